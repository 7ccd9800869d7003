import { sleep } from '../base/clock.ts'
import { messageOf } from '../base/error.ts'
import type { Log } from '../base/log.ts'
import type { Database } from '../store/database.ts'
import { openJobs } from '../store/job/account-jobs.ts'
import { DEFAULT_CREW_TIMINGS } from './crew/crew-timings.ts'
import type { JobWorker } from './worker.ts'

/**
 * Tells the worker of jobs that another process has cancelled, deleted or resumed (`ev jobs cancel`). Gives the function
 * that ends the watch. A job that waits for greylisting commits nothing for minutes, so jobs are
 * looked at every `lookMs`.
 */
export function watchWithdrawals(
  database: Database,
  worker: JobWorker,
  log: Log,
  lookMs = DEFAULT_CREW_TIMINGS.withdrawalLookMs,
): () => void {
  const stopping = new AbortController()
  const { signal } = stopping
  let known = new Set<string>()
  const look = async () => {
    const open = new Set((await openJobs(database)).map(({ id }) => id))
    for (const id of known) if (!open.has(id)) worker.drop(id)
    // What it has already stays as it is; and what it lost to a cancelling that was taken back at once comes to it again.
    for (const id of open) worker.take(id)
    known = open
  }
  const run = async () => {
    while (!signal.aborted) {
      await look().catch(error => log.error('jobs cannot be looked at', { why: messageOf(error) }))
      await sleep(database.clock, lookMs, signal)
    }
  }
  void run()
  return () => stopping.abort()
}
