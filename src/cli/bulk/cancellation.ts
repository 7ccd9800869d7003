import { SECOND } from '../../base/clock.ts'
import type { Database } from '../../store/database.ts'
import { refuseCancelled } from '../../store/job/course.ts'
import { readJob } from '../../store/job/jobs.ts'

/** A job that waits for greylisting commits nothing for minutes; so it is looked at beside that. */
const LOOK_EVERY_MS = 2 * SECOND

/** Calls `onCancelled` when another process has cancelled the job. Gives the function that ends the watch. */
export function watchCancellation(
  database: Database,
  jobId: string,
  onCancelled: (error: unknown) => void,
): () => void {
  let cancelTimer = () => {}
  let isOver = false
  const look = async () => {
    try {
      refuseCancelled(await readJob(database, jobId))
      if (!isOver) cancelTimer = database.clock.after(LOOK_EVERY_MS, look)
    } catch (error) {
      if (!isOver) onCancelled(error)
    }
  }
  cancelTimer = database.clock.after(LOOK_EVERY_MS, look)
  return () => {
    isOver = true
    cancelTimer()
  }
}
