import { onAbort } from '../platform/abort.ts'
import type { Clock } from '../platform/clock.ts'

/**
 * An abort signal with a deadline. `done` releases its timer and listeners; it may be called twice.
 */
type Limit = { readonly signal: AbortSignal; readonly done: () => void }

/**
 * Returns a signal that aborts after `limitMs` (null: no time limit) or as soon as one of `signals`
 * aborts. AbortSignal.any would stay registered on long-lived signals until garbage collection.
 */
export function withDeadline(
  clock: Clock,
  limitMs: number | null,
  signals: readonly (AbortSignal | undefined)[],
): Limit {
  const controller = new AbortController()
  const cancels: (() => void)[] = []
  const done = () => {
    for (const cancel of cancels) cancel()
    cancels.length = 0
  }
  const abort = () => {
    done()
    controller.abort()
  }
  const isOver = limitMs !== null && limitMs <= 0
  if (isOver || signals.some(signal => signal?.aborted)) abort()
  else {
    for (const signal of signals) if (signal !== undefined) cancels.push(onAbort(signal, abort))
    if (limitMs !== null) cancels.push(clock.after(limitMs, abort))
  }
  return { signal: controller.signal, done }
}
