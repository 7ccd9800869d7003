/** Rejects when the signal aborts. `run` itself goes on, because other callers may share it. */
export function abortable<T>(run: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
    run.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
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
    const giveUp = () => resolve(fallback)
    signal.addEventListener('abort', giveUp, { once: true })
    const done = () => signal.removeEventListener('abort', giveUp)
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
