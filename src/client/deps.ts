/** External dependencies of the client; tests inject their own. */
export type ClientDeps = {
  readonly fetch: (url: string, init: RequestInit) => Promise<Response>
  /** Returns the wall-clock time, epoch ms. */
  now(): number
  /** Waits `ms`, or less if `signal` aborts; resolves in both cases. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
  /** Returns a number from 0 up to, but not including, 1. */
  random(): number
}

export const systemDeps: ClientDeps = {
  // Read at each call, so that a replaced global fetch takes effect.
  fetch: (url, init) => globalThis.fetch(url, init),
  now: () => Date.now(),
  sleep(ms, signal) {
    return new Promise(resolve => {
      if (signal?.aborted) return resolve()
      const wake = () => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', wake)
        resolve()
      }
      const timer = setTimeout(wake, Math.min(ms, LONGEST_TIMER_MS))
      signal?.addEventListener('abort', wake, { once: true })
    })
  },
  // Node 18 has no global crypto. The numbers must be unique, but not unguessable.
  random: () =>
    globalThis.crypto === undefined
      ? Math.random()
      : (crypto.getRandomValues(new Uint32Array(1))[0] ?? 0) / 2 ** 32,
}

/** setTimeout fires immediately for delays above 2^31-1 ms. */
const LONGEST_TIMER_MS = 2 ** 31 - 1
