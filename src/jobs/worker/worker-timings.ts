import { SECOND } from '../../platform/clock.ts'

/** Intervals and timeouts of the work on jobs, in ms. */
export type WorkerTimings = {
  /** Interval of the poll for jobs that a client waits for. */
  readonly awaitedPollMs: number
  /** Interval of the poll for jobs that ended in another process. */
  readonly endedPollMs: number
  /** How long a job that is not open, such as a cancelled one, is cached as absent. */
  readonly absentMs: number
  /** Delay of a slot until this process is a member again. */
  readonly rejoinMs: number
  /**
   * Interval of the check for orphaned claims. Longer than any statement takes: a claim found by
   * two consecutive checks is orphaned.
   */
  readonly orphanPollMs: number
  /** Delay before a retry if a job or a batch of results could not be stored. */
  readonly retryMs: number
  /** Maximum delay of a result before its batch is committed. */
  readonly batchMs: number
  /** How long sessions may take to finish after a stop. */
  readonly drainMs: number
  /** How long items of an operator gather before a connection is opened for a few of them. */
  readonly gatherMs: number
  /** How long tasks are collected before one statement enqueues them. */
  readonly enqueueBatchMs: number
  /** Minimum interval for enqueueing an existing task again; it doubles up to the maximum. */
  readonly requeueMs: number
  readonly requeueMaxMs: number
  /** Delay before an item is retried after an internal failure. */
  readonly faultDelayMs: number
  /**
   * Due times of items and tasks are rounded up to a multiple of this, so that they share a
   * connection.
   */
  readonly roundMs: number
  /** Interval of the poll for jobs that are to finish without further retries. */
  readonly finishPollMs: number
  /** Interval of the poll of a single process for jobs that another program cancelled. */
  readonly cancellationPollMs: number
}

export const DEFAULT_WORKER_TIMINGS: WorkerTimings = {
  awaitedPollMs: SECOND / 2,
  endedPollMs: 2 * SECOND,
  absentMs: 2 * SECOND,
  rejoinMs: SECOND / 2,
  orphanPollMs: 15 * SECOND,
  retryMs: SECOND,
  batchMs: 50,
  drainMs: 5 * SECOND,
  gatherMs: 5 * SECOND,
  enqueueBatchMs: 20,
  requeueMs: SECOND,
  requeueMaxMs: 8 * SECOND,
  faultDelayMs: SECOND,
  roundMs: SECOND,
  finishPollMs: 2 * SECOND,
  cancellationPollMs: 2 * SECOND,
}
