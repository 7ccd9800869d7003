type Subscriptions = { readonly callbacks: Set<() => void>; readonly notifyAll: () => void }

/** Only of signals that have a callback. */
const subscriptionsOf = new WeakMap<AbortSignal, Subscriptions>()

/**
 * Calls `callback` once when the signal aborts, at once if it has; the returned function
 * unsubscribes. An EventTarget scans all its listeners whenever one is added, and a list adds
 * thousands to one signal, so all callbacks of a signal share one listener.
 */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  if (signal.aborted) {
    callback()
    return () => {}
  }
  const { callbacks, notifyAll } = subscriptionsOf.get(signal) ?? subscribeTo(signal)
  callbacks.add(callback)
  return () => {
    if (!callbacks.delete(callback) || callbacks.size > 0) return
    signal.removeEventListener('abort', notifyAll)
    subscriptionsOf.delete(signal)
  }
}

function subscribeTo(signal: AbortSignal): Subscriptions {
  const callbacks = new Set<() => void>()
  const notifyAll = () => {
    for (const callback of callbacks) callback()
  }
  signal.addEventListener('abort', notifyAll, { once: true })
  const subscriptions = { callbacks, notifyAll }
  subscriptionsOf.set(signal, subscriptions)
  return subscriptions
}

/** Rejects when the signal aborts. `run` itself goes on, because other callers may share it. */
export function abortable<T>(run: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = onAbort(signal, () => reject(signal.reason))
    run.then(resolve, reject).finally(cancel)
  })
}

/** Resolves like `run`, or with `fallback` if the signal aborts first; `run` is not cancelled. */
export function orOnAbort<T, F>(
  run: Promise<T>,
  signal: AbortSignal | undefined,
  fallback: F,
): Promise<T | F> {
  if (signal === undefined) return run
  if (signal.aborted) return Promise.resolve(fallback)
  return new Promise((resolve, reject) => {
    const done = onAbort(signal, () => resolve(fallback))
    run.then(
      result => {
        done()
        resolve(result)
      },
      error => {
        done()
        reject(error)
      },
    )
  })
}
