import type { Action } from '../engine/verdict/action.ts'
import type { Class } from '../engine/verdict/verdict.ts'
import { SECOND } from '../platform/clock.ts'

/** What a tool needs to verify addresses: an engine in this process, or a service. */
export type Backend = {
  /** Returns the result of one address with its evidence; null if there is none in time. */
  verify(email: string, call: ToolCall): Promise<VerifiedAddress | null>
  /**
   * Starts a list and waits for it. If the client cancels the call, the list is cancelled too,
   * because its ID was never returned.
   */
  verifyList(emails: readonly string[], call: ToolCall): Promise<ListStatus>
  /** Waits for a list. Throws an error with a message for the client if there is no such list. */
  getList(jobId: string, range: RowRange, call: ToolCall): Promise<ListStatus>
  /** Stops a list; its results are kept. A list that has ended stays as it is. */
  cancelList(jobId: string, call: ToolCall): Promise<ListStatus>
  close(): Promise<void>
}

/** One call of a tool. */
export type ToolCall = {
  /** Aborts when the client cancels the call. */
  readonly cancelled: AbortSignal
  /** Aborts when the answer is overdue, and with `cancelled`: every method rejects then. */
  readonly signal: AbortSignal
  /** Aborts when the call has waited long enough, and with `signal`: what is known is returned. */
  readonly waiting: AbortSignal
  /** Tells the client how far the call is. `total` is left out if it is not known. */
  onProgress(progress: Progress): void
}

export type Progress = {
  readonly done: number
  readonly total?: number
  /** A sentence for people. */
  readonly text: string
}

/** The rows after a number; `after` 0 starts with the first. */
export type RowRange = { readonly after: number; readonly limit: number }

/** A result in the names of the HTTP API, from which tools select. */
export type AddressResult = {
  readonly email: string
  readonly class: Class
  readonly action: Action
  /** A sentence. */
  readonly action_reason: string
  readonly reason: string
  readonly risk_level: string
  readonly confidence: number
  readonly did_you_mean?: string | null
  /** Seconds. */
  readonly retry_after?: number
  readonly sandbox?: true
}

/** The result of a single address with the evidence. */
export type VerifiedAddress = AddressResult & {
  readonly checked_at?: string
  readonly flags?: Flags
  readonly evidence?: AddressEvidence
}

type Flags = {
  readonly is_disposable: boolean
  readonly is_role: boolean
  readonly is_catch_all: boolean | null
  readonly is_free: boolean
  readonly is_relay: boolean
}

/** The part of the evidence of the HTTP API that tools use. */
type AddressEvidence = {
  readonly syntax: { readonly message: string } | null
  readonly operator: string | null
  readonly host: string | null
  readonly failure: string | null
  readonly answer: {
    readonly code: number | null
    readonly text: string
    readonly meaning: string
  } | null
}

/** A row of a list that has a result. */
export type ListRow = AddressResult & {
  /** Number of the row, from 1. */
  readonly row: number
}

/** The state of a list with a part of its results. */
export type ListStatus = {
  readonly job_id: string
  readonly status: 'queued' | 'processing' | 'completed' | 'failed' | 'cancelled'
  readonly total: number
  readonly processed: number
  /** Results by class. */
  readonly classes: Readonly<Record<Class, number>>
  /** What unfinished rows wait for, one sentence for each cause. */
  readonly waitingFor: readonly string[]
  /** The available results of the requested rows, in the order of the list. */
  readonly results: readonly ListRow[]
  /** Addresses of the requested rows that have no result yet. */
  readonly pending: readonly string[]
  /** Value of `after` for the next rows; null if there are no more. */
  readonly next_after: number | null
}

/** Whether a list makes no more progress. */
export const hasEnded = ({ status }: Pick<ListStatus, 'status'>): boolean =>
  status !== 'queued' && status !== 'processing'

/** Time limits of a call, in ms. They are not settings: only tests change them. */
export type McpTimings = {
  /** A call that waits for results returns what is known after this time. */
  readonly waitMs: number
  /** A call fails after this time, if not even what is known can be read. */
  readonly answerMs: number
}

/**
 * An answer takes less than ten seconds, whatever mail servers do: some clients give up on a call
 * after ten seconds, and a model that waits cannot tell the user anything.
 */
export const DEFAULT_MCP_TIMINGS: McpTimings = { waitMs: 8 * SECOND, answerMs: 9.5 * SECOND }
