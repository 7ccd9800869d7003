import type { ClientDeps } from './deps.ts'
import { EvConnectionError } from './error.ts'

/** One attempt of a call. Its signal combines the timeout and the caller's signal. */
export type Attempt = {
  readonly signal: AbortSignal
  /** Restarts the timeout. */
  resume(): void
  /** Suspends the timeout while the caller, not the service, is slow. */
  pause(): void
  end(): void
  /** Converts an error for the caller; returns the signal's reason if the caller aborted. */
  toError(error: unknown): unknown
}

export function startAttempt(deps: ClientDeps, timeoutMs: number, outer?: AbortSignal): Attempt {
  const inner = new AbortController()
  let timedOut = false
  let timer = new AbortController()
  const pause = () => timer.abort()
  const resume = () => {
    pause()
    const current = new AbortController()
    timer = current
    void deps.sleep(timeoutMs, current.signal).then(() => {
      if (current.signal.aborted) return
      timedOut = true
      inner.abort()
    })
  }
  const onAbort = () => inner.abort(outer?.reason)
  outer?.addEventListener('abort', onAbort, { once: true })
  resume()
  return {
    signal: inner.signal,
    resume,
    pause,
    end() {
      pause()
      outer?.removeEventListener('abort', onAbort)
    },
    toError(error) {
      if (outer?.aborted) return outer.reason
      if (timedOut) {
        return new EvConnectionError(
          `No response within ${timeoutMs} ms. Set timeoutMs to wait longer.`,
          { timedOut, cause: error },
        )
      }
      return new EvConnectionError(`The connection failed: ${describeCause(error)}`, {
        timedOut,
        cause: error,
      })
    },
  }
}

/** Includes the cause: the message of Node is only "fetch failed". */
function describeCause(error: unknown): string {
  const { message, cause } =
    error instanceof Error ? error : { message: String(error), cause: null }
  return cause instanceof Error && cause.message !== '' ? `${message} (${cause.message})` : message
}
