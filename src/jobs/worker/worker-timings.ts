import { SECOND } from '../../platform/clock.ts'

/** Intervals and timeouts of the work on jobs, in ms. */
export type WorkerTimings = {
  /** How often jobs are looked at that a client waits for. */
  readonly awaitedMs: number
  /** How soon it is noticed that a job ended in another process. */
  readonly endedMs: number
  /** How long a job that is not worked on, as one that was cancelled, is remembered as such. */
  readonly absentMs: number
  /** Wait until this process is a member again. */
  readonly rejoinMs: number
  /**
   * How often claimed items are looked for that no conversation has. Longer than any statement
   * takes: what is missing in two looks is lost.
   */
  readonly orphanPollMs: number
  /** Wait after a job or a group of results could not be stored. */
  readonly retryMs: number
  /** Results of so much time are committed together. */
  readonly groupMs: number
  /** After a stop, how long conversations may take to end by themselves. */
  readonly drainMs: number
  /** How long items of an operator gather before a connection is opened for a few of them. */
  readonly gatherMs: number
  /** Entries of so much time are put by one statement. */
  readonly entriesMs: number
  /** An entry that is there already is put again at most so often; doubles up to the maximum. */
  readonly againMs: number
  readonly againMaxMs: number
  /** Wait before an item is asked again after a failure inside ev. */
  readonly faultDelayMs: number
  /** Times of items and entries are rounded up to this, so that they share a connection. */
  readonly roundMs: number
  /** How often a single process looks for jobs that another program cancelled. */
  readonly withdrawalLookMs: number
}

export const DEFAULT_WORKER_TIMINGS: WorkerTimings = {
  awaitedMs: SECOND / 2,
  endedMs: 2 * SECOND,
  absentMs: 2 * SECOND,
  rejoinMs: SECOND / 2,
  orphanPollMs: 15 * SECOND,
  retryMs: SECOND,
  groupMs: 50,
  drainMs: 5 * SECOND,
  gatherMs: 5 * SECOND,
  entriesMs: 20,
  againMs: SECOND,
  againMaxMs: 8 * SECOND,
  faultDelayMs: SECOND,
  roundMs: SECOND,
  withdrawalLookMs: 2 * SECOND,
}
