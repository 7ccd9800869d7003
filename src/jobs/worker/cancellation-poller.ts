import type { Database } from '../../db/database.ts'
import type { Log } from '../../platform/log.ts'
import { type Loop, startLoop } from '../../platform/loop.ts'
import { openJobs } from '../job-list.ts'
import { JOB_LOG } from '../telemetry.ts'
import type { JobWorker } from './worker-deps.ts'
import { DEFAULT_WORKER_TIMINGS } from './worker-timings.ts'

/**
 * Notifies the worker of jobs that another process has started, resumed, cancelled, deleted or
 * finished. A job that waits for greylisting commits nothing for minutes, so jobs are polled every
 * `pollMs`.
 */
export function watchCancellations(
  database: Database,
  worker: JobWorker,
  log: Log,
  pollMs = DEFAULT_WORKER_TIMINGS.cancellationPollMs,
): Loop {
  const poll = async () => {
    // A job that is taken during the read may be missing in it.
    const active = worker.jobIds
    const open = new Set((await openJobs(database)).map(({ id }) => id))
    for (const id of active) if (!open.has(id)) worker.drop(id)
    // Active jobs stay as they are; a job dropped because of a cancellation that was reverted at
    // once is started again.
    for (const id of open) worker.take(id)
  }
  return startLoop({
    failed: JOB_LOG.cancellationPollFailed,
    everyMs: pollMs,
    run: poll,
    clock: database.clock,
    log,
  })
}
