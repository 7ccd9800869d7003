import { type Clock, SECOND, sleep } from '../../platform/clock.ts'
import { formatDuration } from '../../platform/format.ts'

/** Monitoring systems poll every few seconds and treat a longer silence as a failure. */
const TIMEOUT_MS = 3 * SECOND

/** Resolves with the result of `work`; throws if it takes longer than the timeout. */
export async function inTime<T>(clock: Clock, work: Promise<T>): Promise<T> {
  const done = new AbortController()
  const timeout = sleep(clock, TIMEOUT_MS, done.signal).then(() => {
    throw new Error(`no answer within ${formatDuration(TIMEOUT_MS)}`)
  })
  // Avoids an unhandled rejection when `work` wins the race.
  timeout.catch(() => {})
  return Promise.race([work, timeout]).finally(() => done.abort())
}
