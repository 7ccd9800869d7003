import { HOUR, MINUTE } from '../base/clock.ts'
import type { Result } from '../verdict/verdict.ts'

/** RFC 5321 §4.5.4.1 wants patience; three tries in four hours is what we allow ourselves. */
const TRIES_MAX = 3
const WAIT_IN_ALL_MAX_MS = 4 * HOUR
/** postgrey's default, and that of most greylists. */
const GREYLIST_DELAY_MS = 5 * MINUTE
/** What a server may make us wait at most for one try. */
const DELAY_MAX_MS = HOUR

/** What an item of a list has been through. */
export type Tries = {
  /** How often a server was asked about it so far, this time included. */
  readonly count: number
  /** Since the first time, in ms. */
  readonly waitedMs: number
}

/**
 * How long an item of a list should wait before it is asked again, in ms; null when its result is final.
 * Greylisting, trouble on their side and a pause that the operator wants are worth a wait.
 * `greylistDelayMs`, when set, wins over what the server names.
 */
export function askAgainAfter(
  { evidence }: Result,
  asked: boolean,
  tries: Tries,
  greylistDelayMs: number | null,
): number | null {
  const { answer } = evidence
  if (answer?.kind !== 'deferred' || tries.waitedMs >= WAIT_IN_ALL_MAX_MS) return null
  // A pause is no try: nobody was asked.
  if (!asked) return Math.min(answer.retryAfterMs ?? GREYLIST_DELAY_MS, DELAY_MAX_MS)
  if (tries.count >= TRIES_MAX) return null
  return Math.min(greylistDelayMs ?? answer.retryAfterMs ?? GREYLIST_DELAY_MS, DELAY_MAX_MS)
}

/** After how many seconds a single verification should be asked again; null when that would not help. */
export function retryAfterSeconds({ verdict, evidence }: Result): number | null {
  const { answer } = evidence
  if (answer?.kind !== 'deferred') return null
  const delayMs =
    answer.retryAfterMs ?? (verdict.reason === 'greylisted' ? GREYLIST_DELAY_MS : null)
  return delayMs === null ? null : Math.ceil(delayMs / 1_000)
}
