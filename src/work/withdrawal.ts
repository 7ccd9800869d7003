import { SECOND, sleep } from '../base/clock.ts'
import { messageOf } from '../base/error.ts'
import type { Log } from '../base/log.ts'
import type { Database } from '../store/database.ts'
import { openJobs } from '../store/job/account-jobs.ts'
import type { JobWorker } from './worker.ts'

/** A job that waits for greylisting commits nothing for minutes; so it is looked at beside that. */
const LOOK_EVERY_MS = 2 * SECOND

/**
 * Tells the worker of jobs that another process has cancelled, deleted or resumed (`ev jobs cancel`). Gives the function
 * that ends the watch.
 */
export function watchWithdrawals(database: Database, worker: JobWorker, log: Log): () => void {
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
      await sleep(database.clock, LOOK_EVERY_MS, signal)
    }
  }
  void run()
  return () => stopping.abort()
}
