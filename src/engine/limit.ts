import type { Clock } from '../base/clock.ts'

/** A signal with an end of its own; `done` gives back what it holds, and may be called twice. */
export type Limit = { readonly signal: AbortSignal; readonly done: () => void }

/**
 * A signal that aborts after `limitMs` (null: never by itself) or as soon as one of `signals` does.
 * AbortSignal.any would hang on long-lived signals until it is collected.
 */
export function limited(
  clock: Clock,
  limitMs: number | null,
  signals: readonly (AbortSignal | undefined)[],
): Limit {
  const limit = new AbortController()
  const given = signals.filter(signal => signal !== undefined)
  let cancel = () => {}
  const done = () => {
    cancel()
    for (const signal of given) signal.removeEventListener('abort', giveUp)
  }
  const giveUp = () => {
    done()
    limit.abort()
  }
  if (given.some(signal => signal.aborted) || (limitMs !== null && limitMs <= 0)) giveUp()
  else {
    if (limitMs !== null) cancel = clock.after(limitMs, giveUp)
    for (const signal of given) signal.addEventListener('abort', giveUp, { once: true })
  }
  return { signal: limit.signal, done }
}

/** The caller stops waiting when its signal aborts; the work itself may serve others and goes on. */
export function orAborted<T>(run: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    run.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}
