import { SECOND } from '../platform/clock.ts'
import type { CliContext } from './context.ts'

const SIGNALS = ['SIGINT', 'SIGTERM'] as const

export type StopSignal = (typeof SIGNALS)[number]

/**
 * A signal this soon after the first one belongs to the same request: timeout(1) and some
 * supervisors signal a process and its group. A user takes longer to press Ctrl-C again.
 */
const SAME_REQUEST_MS = SECOND / 10

/**
 * Calls `stop` with the first SIGINT or SIGTERM, and `force` with each later request to stop.
 * Returns a function that removes the listeners.
 */
export function onStopSignal(
  { clock, signals }: Pick<CliContext, 'clock' | 'signals'>,
  stop: (signal: StopSignal) => void,
  force: (signal: StopSignal) => void,
): () => void {
  let stoppedAt: number | null = null
  const listeners = SIGNALS.map(signal => {
    const listener = () => {
      const now = clock.monotonicNow()
      if (stoppedAt === null) {
        stoppedAt = now
        stop(signal)
      } else if (now - stoppedAt >= SAME_REQUEST_MS) force(signal)
    }
    signals.on(signal, listener)
    return () => signals.off(signal, listener)
  })
  return () => {
    for (const remove of listeners) remove()
  }
}
