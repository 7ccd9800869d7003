import type { Clock } from '../../platform/clock.ts'

/** Tells of what may happen a thousand times a second: the first at once, then once in `everyMs`, with how many there were. */
export function throttled(clock: Clock, everyMs: number, log: (count: number) => void): () => void {
  let count = 0
  let quietUntil = Number.NEGATIVE_INFINITY
  return () => {
    count++
    if (clock.monotonicNow() < quietUntil) return
    quietUntil = clock.monotonicNow() + everyMs
    log(count)
    count = 0
  }
}
