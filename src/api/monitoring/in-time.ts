import { type Clock, SECOND, sleep } from '../../platform/clock.ts'
import { formatDuration } from '../../platform/format.ts'

/** Whoever watches looks every few seconds, and takes a longer silence for a fault itself. */
const TIMEOUT_MS = 3 * SECOND

/** What `work` gives; throws where it takes longer than who watches waits. */
export async function inTime<T>(clock: Clock, work: Promise<T>): Promise<T> {
  const over = new AbortController()
  const late = sleep(clock, TIMEOUT_MS, over.signal).then(() => {
    throw new Error(`no answer within ${formatDuration(TIMEOUT_MS)}`)
  })
  // Of the two the one that comes second is heard by nobody.
  late.catch(() => {})
  return Promise.race([work, late]).finally(() => over.abort())
}
