/** What became of one attempt that brought nothing. */
export type Failure = {
  /** Null: no answer came, or not all of it. */
  readonly status: number | null
  readonly code: string | null
  readonly retryAfterMs: number | null
}

/** How long to wait before the next attempt; null: there is none. `attempt` counts from 0. */
export function waitMs(
  failure: Failure,
  o: { attempt: number; retries: number; random: () => number },
): number | null {
  if (o.attempt >= o.retries || !isPassing(failure)) return null
  const asked = failure.retryAfterMs
  // Asking sooner than told would be refused again, so a wait that is too long ends the call.
  if (asked !== null && asked > RETRY_AFTER_MAX_MS) return null
  const backOffMs = Math.min(BACK_OFF_MAX_MS, BACK_OFF_MS * 2 ** o.attempt)
  // Full jitter: clients that failed together do not come back together, even where all were told the same second.
  return Math.round((asked ?? 0) + o.random() * (asked === null ? backOffMs : BACK_OFF_MS))
}

/** Whether the same request may fare better later. */
const isPassing = ({ status, code }: Failure) =>
  status === null ||
  PASSING.has(status) ||
  // The attempt before, of which we saw no answer, is still at work.
  code === 'idempotency_in_progress'

/** 408: the request came too slowly. 501 and 505 stay as they are. */
const PASSING: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504])

const BACK_OFF_MS = 500
const BACK_OFF_MAX_MS = 8_000
/** A limit by the minute is waited out, one by the hour or the day is told to the caller. */
const RETRY_AFTER_MAX_MS = 60_000
