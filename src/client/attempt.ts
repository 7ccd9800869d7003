import type { ClientDeps } from './deps.ts'
import { EvConnectionError } from './error.ts'

/** One attempt: its time limit, and the caller's signal, as one signal. */
export type Attempt = {
  readonly signal: AbortSignal
  /** Lets the time run anew. */
  resume(): void
  /** The time stands still: it is not the service that is waited for. */
  pause(): void
  end(): void
  /** What to tell of an error; where the caller ended it, the caller's own reason. */
  faultOf(error: unknown): unknown
}

export function startAttempt(deps: ClientDeps, timeoutMs: number, outer?: AbortSignal): Attempt {
  const inner = new AbortController()
  let timedOut = false
  let timer = new AbortController()
  const pause = () => timer.abort()
  const resume = () => {
    pause()
    const mine = new AbortController()
    timer = mine
    void deps.sleep(timeoutMs, mine.signal).then(() => {
      if (mine.signal.aborted) return
      timedOut = true
      inner.abort()
    })
  }
  const leave = () => inner.abort(outer?.reason)
  outer?.addEventListener('abort', leave, { once: true })
  resume()
  return {
    signal: inner.signal,
    resume,
    pause,
    end() {
      pause()
      outer?.removeEventListener('abort', leave)
    },
    faultOf(error) {
      if (outer?.aborted) return outer.reason
      if (timedOut) {
        return new EvConnectionError(
          `No answer within ${timeoutMs} ms. Set timeoutMs to wait longer.`,
          { timedOut, cause: error },
        )
      }
      return new EvConnectionError(`The connection failed: ${reasonOf(error)}`, {
        timedOut,
        cause: error,
      })
    },
  }
}

/** Node hides what happened ("ECONNREFUSED") in the cause of "fetch failed". */
function reasonOf(error: unknown): string {
  const { message, cause } =
    error instanceof Error ? error : { message: String(error), cause: null }
  return cause instanceof Error && cause.message !== '' ? `${message} (${cause.message})` : message
}
