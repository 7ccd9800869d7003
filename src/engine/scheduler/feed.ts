import type { Acceptance } from '../probe/mx-groups.ts'
import type { AttemptHistory, Retry } from '../probing/retry-policy.ts'
import type { Result } from '../verdict/verdict.ts'

/**
 * An address of a list. Its history is null if it was not probed before; else it includes the
 * acceptance of the recipient, if only the catch-all test of its domain is missing, and the time
 * until the next attempt is due.
 */
export type Row<T> = {
  readonly item: T
  readonly text: string
  readonly history:
    | (AttemptHistory & { readonly accepted: Acceptance | null; readonly dueInMs: number })
    | null
}

/** Supplies the rows of a run. */
export type Feed<T> = {
  /** Resolves with 1 to `max` rows as soon as there are any; with null after the last one. */
  read(max: number): Promise<readonly Row<T>[] | null>
}

/**
 * Takes what becomes of the rows of a run: for each row `decided` or `refused` is called, once, and
 * before that `postponed` any number of times. If a method throws, the run ends with an error that
 * names it.
 */
export type Sink<T> = {
  decided(item: T, result: Result): void
  /** The row stays with the scheduler, which probes it again after `retry.delayMs`. */
  postponed(item: T, retry: Retry): void
  /** The run ended before the row had a result. */
  refused(item: T): void
  /** Number of results that it still holds. They count toward the window. */
  readonly held: number
}
