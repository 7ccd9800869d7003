import type { RecipientOutcome } from '../smtp/classify-reply.ts'
import type { RateLimits } from './limit-table.ts'
import type { RateChange, RateNote, RateState } from './rules.ts'

/** The key of a rate state: an operator and the egress that probes it. */
export type RateKey = { readonly operator: string; readonly egress: string }

/** Releases a permit; may be called once. */
export type PermitEnd = () => void

/** Access to one rate state, which is local to this process or shared with others. */
export interface RateStateHandle {
  /** The last known state, including changes made here. */
  readonly state: RateState
  /** Last known connections of all processes, including those being requested here. */
  readonly sessions: number
  /** Returns the connections reserved for other processes that come first. */
  reservedForOthers(single: boolean): number
  /** True if a single verification waits in another process. */
  readonly isSingleWaiting: boolean
  /** Returns the current time of the clock that the state uses, in ms. */
  now(): number
  /**
   * Acquires a permit for one more connection, which the last known state allows. Returns null if
   * other processes were faster or `signal` aborted. Rejects if the shared state cannot be reached.
   */
  acquire(signal: AbortSignal, single: boolean): PermitEnd | Promise<PermitEnd | null>
  /** Applies a change and shares it at once. Never throws: a failed write is retried. */
  change(change: RateChange): void
  /** Applies a change that is shared when its connection ends. */
  note(change: RateNote): void
  /** Calls back on changes by others until the returned function is called. */
  watch(callback: () => void, single: boolean): () => void
}

/**
 * Rate states shared by several processes. Shared are concurrent connections, connections per
 * second, the adaptive limits, pauses and blocks. Each process counts streaks of unknown users from
 * what it knows, and they are merged when a connection ends. In the worst case, each process with a
 * connection reaches `unknownStreakMax` on its own before all are paused.
 */
export interface SharedRateState {
  open(key: RateKey, limits: RateLimits): RateStateHandle
  /** Returns the last known block of this egress by the operator, whichever process met it. */
  refusal(key: RateKey): CurrentBlock | null
}

/** The reply that blocked us, and how much longer the block counts, in ms. */
export type CurrentBlock = { readonly answer: RecipientOutcome; readonly leftMs: number }
