import type { Database } from '../../db/database.ts'
import type { Log } from '../../platform/log.ts'
import { type Loop, startLoop } from '../../platform/loop.ts'
import { openJobs } from '../job-list.ts'
import type { JobWorker } from './start-worker.ts'
import { DEFAULT_WORKER_TIMINGS } from './worker-timings.ts'

/**
 * Tells the worker of jobs that another process has cancelled, deleted or resumed (`ev jobs cancel`). A
 * job that waits for greylisting commits nothing for minutes, so jobs are looked at every `lookMs`.
 */
export function watchCancellations(
  database: Database,
  worker: JobWorker,
  log: Log,
  pollMs = DEFAULT_WORKER_TIMINGS.withdrawalLookMs,
): Loop {
  let known = new Set<string>()
  const look = async () => {
    const open = new Set((await openJobs(database)).map(({ id }) => id))
    for (const id of known) if (!open.has(id)) worker.drop(id)
    // What it has already stays as it is; and what it lost to a cancelling that was taken back at once comes to it again.
    for (const id of open) worker.take(id)
    known = open
  }
  return startLoop({
    ...{ name: 'the poll for cancelled jobs', everyMs: pollMs, run: look },
    ...{ clock: database.clock, log },
  })
}
