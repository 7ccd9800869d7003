import type { Acceptance, RouteWithHost } from '../probe/mx-groups.ts'
import type { ProbeTask } from '../probe/prepare.ts'
import type { AttemptHistory, Outcome, Retry } from '../probe/retry-policy.ts'
import type { Result } from '../verdict/verdict.ts'

/** An address of a list. Its history is null if it was not probed before. */
export type Row<T> = {
  readonly item: T
  readonly text: string
  readonly history: RowHistory | null
  /** The operator for which `drained` asked for it. Left out for other rows. */
  readonly askedBy?: string | undefined
}

export type RowHistory = AttemptHistory & {
  /** The acceptance of the recipient if only the catch-all test of its domain is missing. */
  readonly accepted: Acceptance | null
  /** Its route if it was looked up before and is still to be used. */
  readonly route: RouteWithHost | null
}

/** Supplies the rows of a run. */
export type Feed<T> = {
  /**
   * Resolves with 1 to `max` rows as soon as there are any, and with null after the last one. An
   * empty page means that more rows follow only when the scheduler returns some, or later: those
   * that it has need not wait for them. The next call waits.
   */
  read(max: number): Promise<readonly Row<T>[] | null>
  /**
   * Whether all rows exist already, so that a page that takes long to read does not mean that there
   * are no more for now. Default: false.
   */
  readonly isStored?: boolean
}

/** What is known of a row that is probed again later. */
export type Postponement = {
  readonly retry: Retry
  readonly outcome: Outcome
  readonly task: ProbeTask
}

/** What is known of a row that is not probed now. */
export type Refusal = {
  readonly task: ProbeTask
  /** Whether only egresses of other processes may probe it. */
  readonly isElsewhere: boolean
}

/**
 * Takes what becomes of the rows of a run: for each row that the feed supplies, `decided` or
 * `refused` is called once, or `postponed` with the return value true. If a method throws, the run
 * ends with an error that names it.
 */
export type Sink<T> = {
  decided(item: T, result: Result): void
  /**
   * Returns true if the feed supplies the row again after `retry.delayMs`; false if the scheduler is
   * to keep it until then.
   */
  postponed(item: T, postponement: Postponement): boolean
  /**
   * Takes a row back without a result: its operator has as many rows as the scheduler keeps, and the
   * feed supplies it again after `drained`; or another process is to probe it; or the run ended, and
   * `refusal` is null.
   */
  refused(item: T, refusal: Refusal | null): void
  /**
   * Asks for up to `room` of the refused rows of an operator. Returns the number of those that the
   * feed supplies again, each marked with the operator; 0 if it has no more. A promise is resolved
   * before the first of them is supplied, and the operator is not asked for again until then.
   */
  drained(operator: string, room: number): number | Promise<number>
  /** Number of results that it still holds. They count toward the window. */
  readonly held: number
}
