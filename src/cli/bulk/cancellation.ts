import type { Database } from '../../db/database.ts'
import { refuseCancelled } from '../../jobs/job-state.ts'
import { readJob } from '../../jobs/job-store.ts'
import { SECOND } from '../../platform/clock.ts'
import { silentLog } from '../../platform/log.ts'
import { startLoop } from '../../platform/loop.ts'

/** A job that waits for greylisting commits nothing for minutes; so it is looked at beside that. */
const POLL_INTERVAL_MS = 2 * SECOND

/** Calls `onCancelled` when another process has cancelled the job. Gives the function that ends the watch. */
export function watchCancellation(
  database: Database,
  jobId: string,
  onCancelled: (error: unknown) => void,
): () => void {
  const end = () => void loop.stop()
  const loop = startLoop({
    ...{ name: 'the poll for a cancellation', clock: database.clock, log: silentLog },
    ...{ everyMs: POLL_INTERVAL_MS, startAfterMs: POLL_INTERVAL_MS },
    run: async () => refuseCancelled(await readJob(database, jobId)),
    onFailure(error) {
      end()
      onCancelled(error)
    },
  })
  return end
}
