import { TransportFault } from '../../outbound/transport-error.ts'
import type { Clock } from '../../platform/clock.ts'

/** Operations in flight with a deadline. */
type Deadlines = {
  /**
   * Runs `act` with a signal that aborts at the deadline, with a TransportFault that says
   * `tooLate`.
   */
  within<T>(ms: number, tooLate: string, act: (signal: AbortSignal) => Promise<T>): Promise<T>
  /** Aborts all operations, also those that start later. */
  abortAll(why: string): void
}

export function createDeadlines(clock: Clock): Deadlines {
  const running = new Set<AbortController>()
  let closed: TransportFault | null = null
  return {
    async within(ms, tooLate, act) {
      if (closed !== null) throw closed
      const timer = new AbortController()
      const cancel = clock.after(ms, () => timer.abort(new TransportFault('timeout', tooLate)))
      running.add(timer)
      try {
        return await act(timer.signal)
      } finally {
        cancel()
        running.delete(timer)
      }
    },
    abortAll(why) {
      closed = new TransportFault('interrupted', why)
      for (const timer of running) timer.abort(closed)
    },
  }
}
