import { SECOND } from '../../platform/clock.ts'

/** Intervals and timeouts of the work on jobs, in ms. */
export type WorkerTimings = {
  /** Interval of the poll for jobs that a client waits for. */
  readonly awaitedPollMs: number
  /** Interval at which a member of a cluster looks for rows that it can claim. */
  readonly claimPollMs: number
  /** Delay of a member of a cluster between two shares of a list, and until it is one again. */
  readonly rejoinMs: number
  /** Delay before a retry if a job or a batch of results could not be stored. */
  readonly retryMs: number
  /** Maximum delay of a result before its batch is committed. */
  readonly batchMs: number
  /** How long sessions may take to finish after a stop. */
  readonly drainMs: number
  /**
   * Due times of items and tasks are rounded up to a multiple of this, so that they share a
   * connection.
   */
  readonly roundMs: number
  /** Interval of the poll for jobs that are to finish without further retries. */
  readonly finishPollMs: number
  /** Interval of the poll for jobs that others started, cancelled or finished. */
  readonly cancellationPollMs: number
}

export const DEFAULT_WORKER_TIMINGS: WorkerTimings = {
  awaitedPollMs: SECOND / 2,
  claimPollMs: SECOND,
  rejoinMs: SECOND / 2,
  retryMs: SECOND,
  batchMs: 50,
  drainMs: 5 * SECOND,
  roundMs: SECOND,
  finishPollMs: 2 * SECOND,
  cancellationPollMs: 2 * SECOND,
}
