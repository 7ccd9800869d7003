/** What `run` gives, or `fallback` when the signal aborts first; `run` itself goes on. */
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
    run.then(resolve, reject).finally(() => signal.removeEventListener('abort', giveUp))
  })
}
