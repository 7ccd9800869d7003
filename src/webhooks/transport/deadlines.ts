import type { Clock } from '../../platform/clock.ts'
import { TransportFault } from './transport-error.ts'

/** What is under way and has an end. */
export type Deadlines = {
  /** Does something whose signal aborts when its time is over. `tooLate` is the sentence of the abort's PostFault. */
  within<T>(ms: number, tooLate: string, act: (signal: AbortSignal) => Promise<T>): Promise<T>
  /** Aborts all that is under way, and all that begins afterwards. */
  endAll(why: string): void
}

export function deadlines(clock: Clock): Deadlines {
  const open = new Set<AbortController>()
  let ended: TransportFault | null = null
  return {
    async within(ms, tooLate, act) {
      if (ended !== null) throw ended
      const timer = new AbortController()
      const cancel = clock.after(ms, () => timer.abort(new TransportFault('timeout', tooLate)))
      open.add(timer)
      try {
        return await act(timer.signal)
      } finally {
        cancel()
        open.delete(timer)
      }
    },
    endAll(why) {
      ended = new TransportFault('interrupted', why)
      for (const timer of open) timer.abort(ended)
    },
  }
}
