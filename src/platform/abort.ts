/** The callbacks of a signal. */
type Subscriptions = {
  readonly callbacks: Set<() => void>
  /** The one listener of a signal whose controller does not know the callbacks. */
  readonly notifyAll: (() => void) | null
}

/** A property of the signal, because a WeakMap of thousands of short-lived keys slows down each GC. */
const SUBSCRIPTIONS = Symbol('subscriptions')

type ObservedSignal = AbortSignal & { [SUBSCRIPTIONS]?: Subscriptions | undefined }

/**
 * An AbortController that calls the callbacks of `onAbort` itself. Without an EventTarget listener, a
 * short-lived signal with callbacks costs a quarter of the CPU.
 */
export class CallbackAbortController extends AbortController {
  readonly #callbacks = new Set<() => void>()

  constructor() {
    super()
    const signal: ObservedSignal = this.signal
    signal[SUBSCRIPTIONS] = { callbacks: this.#callbacks, notifyAll: null }
  }

  override abort(reason?: unknown): void {
    if (this.signal.aborted) return
    super.abort(reason)
    for (const callback of this.#callbacks) callback()
    this.#callbacks.clear()
  }
}

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
  const observed: ObservedSignal = signal
  const { callbacks, notifyAll } = observed[SUBSCRIPTIONS] ?? subscribeTo(observed)
  callbacks.add(callback)
  return () => {
    if (!callbacks.delete(callback) || callbacks.size > 0 || notifyAll === null) return
    observed.removeEventListener('abort', notifyAll)
    observed[SUBSCRIPTIONS] = undefined
  }
}

function subscribeTo(signal: ObservedSignal): Subscriptions {
  const callbacks = new Set<() => void>()
  const notifyAll = () => {
    for (const callback of callbacks) callback()
  }
  signal.addEventListener('abort', notifyAll, { once: true })
  const subscriptions = { callbacks, notifyAll }
  signal[SUBSCRIPTIONS] = subscriptions
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
