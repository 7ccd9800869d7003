import type { Clock } from '../platform/clock.ts'

/** A signal with an end of its own; `done` gives back what it holds, and may be called twice. */
export type Limit = { readonly signal: AbortSignal; readonly done: () => void }

/**
 * A signal that aborts after `limitMs` (null: never by itself) or as soon as one of `signals` does.
 * AbortSignal.any would hang on long-lived signals until it is collected.
 */
export function withDeadline(
  clock: Clock,
  limitMs: number | null,
  signals: readonly (AbortSignal | undefined)[],
): Limit {
  const limit = new AbortController()
  const given = signals.filter(signal => signal !== undefined)
  let cancels: (() => void)[] = []
  const done = () => {
    for (const cancel of cancels) cancel()
    cancels = []
  }
  const giveUp = () => {
    done()
    limit.abort()
  }
  if (given.some(signal => signal.aborted) || (limitMs !== null && limitMs <= 0)) giveUp()
  else {
    cancels = given.map(signal => onAbort(signal, giveUp))
    if (limitMs !== null) cancels.push(clock.after(limitMs, giveUp))
  }
  return { signal: limit.signal, done }
}

/** Whom a signal is passed on to. */
const listeners = new WeakMap<AbortSignal, Set<() => void>>()

/**
 * Calls back when the signal aborts; the returned function cancels it. An EventTarget looks through all its
 * listeners whenever one is added, and a list has thousands: one listener of ours stands for all.
 */
function onAbort(signal: AbortSignal, callback: () => void): () => void {
  const all = listeners.get(signal) ?? firstListener(signal)
  all.add(callback)
  return () => all.delete(callback)
}

function firstListener(signal: AbortSignal): Set<() => void> {
  const all = new Set<() => void>()
  listeners.set(signal, all)
  const notifyAll = () => {
    for (const callback of [...all]) callback()
  }
  signal.addEventListener('abort', notifyAll, { once: true })
  return all
}

/** The caller stops waiting when its signal aborts; the work itself may serve others and goes on. */
export function abortable<T>(run: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    run.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}
