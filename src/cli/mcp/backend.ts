import type { Class } from '../../engine/verdict/verdict.ts'

/** One row of a list. */
export type ListRow = {
  /** Number of the row in the list, from 1. */
  readonly row: number
  readonly email: string
  readonly class: string | null
  readonly risk_level: string | null
  readonly reason: string | null
}

/** The state of a list with a part of its results. */
export type ListStatus = {
  readonly job_id: string
  readonly status: string
  readonly total: number
  readonly processed: number
  /** Results by class. */
  readonly classes: Readonly<Record<Class, number>>
  /** The available results of the requested rows, in the order of the list. */
  readonly results: readonly ListRow[]
  /** Value of `after` for the next rows; null if there are no more. */
  readonly next_after: number | null
}

/** The rows after a number; `after` 0 starts with the first. */
export type RowRange = { readonly after: number; readonly limit: number }

/** Verifies addresses with an engine in this process, or with a service. */
export type Backend = {
  /** Verifies one address; the result has its evidence. */
  verify(email: string, signal: AbortSignal): Promise<VerifiedAddress>
  /** Starts the verification of a list. A short list is finished when this resolves. */
  verifyList(emails: readonly string[], signal: AbortSignal): Promise<ListStatus>
  /** Returns the status of a list. Throws EvError if there is no such list. */
  getList(jobId: string, range: RowRange, signal: AbortSignal): Promise<ListStatus>
  close(): Promise<void>
}

type VerifiedAddress = {
  readonly email: string
  readonly reason: string
  readonly evidence?: object
}

/** A list of up to this many addresses is answered at once. */
export const INSTANT_MAX = 10

/** Rows of a response unless more are requested. */
export const ROWS = 100
