import type { RecipientOutcome } from '../smtp/classify-reply.ts'
import type { RateLimits } from './limit-table.ts'
import type { RateChange, RateNote, RateState } from './rules.ts'

/** Whose pace: an operator's, as one egress asks it. */
export type RateKey = { readonly operator: string; readonly egress: string }

/** Gives the right to hold a connection back; may be called once. */
export type PermitEnd = () => void

/** Where one pace is kept: in this process, or shared with others. */
export interface RateStateHandle {
  /** As last known, with all that was told here. */
  readonly state: RateState
  /** Connections held by anybody, as last known, with those that are being asked for here. */
  readonly sessions: number
  /** Connections that are kept free for those who wait elsewhere and come first. */
  kept(single: boolean): number
  /** Somebody elsewhere waits for an answer. */
  readonly isSingleWaiting: boolean
  /** The time of the clock that the state goes by, ms. */
  now(): number
  /**
   * Opens one more connection, which as far as is known here may be opened. Null where others were faster, or `signal`
   * aborted. Rejects where it cannot be told whether it may.
   */
  begin(signal: AbortSignal, single: boolean): PermitEnd | Promise<PermitEnd | null>
  /** Something happened that all should know at once. Never throws: where it cannot be told now, that is tried again. */
  change(change: RateChange): void
  /** The same for what can wait until the connection ends that met it. */
  note(change: RateNote): void
  /** Somebody waits: calls whenever others changed something; the function that it gives ends that. */
  watch(call: () => void, single: boolean): () => void
}

/**
 * Paces that several processes keep together. What holds over all of them: connections at the same time and each second,
 * the allowance that grows and halves, pauses and refusals. Rows of unknown users are counted by each process
 * from what it knows, and put together when a connection ends: in the worst case each process that has a connection
 * leaves at the row's end that it sees itself, so that `unknownStreakMax` of each go by before all are paused.
 */
export interface SharedRateState {
  open(key: RateKey, row: RateLimits): RateStateHandle
  /** What the operator said that refuses this egress, whichever process asks by it; as last known. */
  refusal(key: RateKey): CurrentBlock | null
}

/** What was said, and how much longer it is believed, in ms. */
export type CurrentBlock = { readonly answer: RecipientOutcome; readonly leftMs: number }
