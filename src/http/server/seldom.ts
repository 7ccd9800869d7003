import type { Clock } from '../../base/clock.ts'

/** Tells of what may happen a thousand times a second: the first at once, then once in `everyMs`, with how many there were. */
export function seldom(clock: Clock, everyMs: number, tell: (count: number) => void): () => void {
  let count = 0
  let quietUntil = Number.NEGATIVE_INFINITY
  return () => {
    count++
    if (clock.ticks() < quietUntil) return
    quietUntil = clock.ticks() + everyMs
    tell(count)
    count = 0
  }
}
