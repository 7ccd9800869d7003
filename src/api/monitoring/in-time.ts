import { type Clock, SECOND, withTimeout } from '../../platform/clock.ts'
import { formatDuration } from '../../platform/format.ts'

/** Monitoring systems poll every few seconds and treat a longer silence as a failure. */
const TIMEOUT_MS = 3 * SECOND

/** Resolves with the result of `work`; throws if it takes longer than the timeout. */
export const inTime = <T>(clock: Clock, work: Promise<T>): Promise<T> =>
  withTimeout(clock, work, {
    timeoutMs: TIMEOUT_MS,
    message: `no answer within ${formatDuration(TIMEOUT_MS)}`,
  })
