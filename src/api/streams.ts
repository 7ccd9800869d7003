import { requestError } from './errors/request-errors.ts'

/** Each stream reads the database twice a second; a person has a few pages open. */
export const STREAMS_PER_ACCOUNT_MAX = 20
export const STREAMS_MAX = 1_000

/** The slot of an open event stream. */
type StreamSlot = {
  /** Aborts when the service stops. */
  readonly stopping: AbortSignal
  /** May be called twice. */
  leave(): void
}

/** Limits the open event streams and closes them at shutdown. */
export class Streams {
  readonly #byAccount = new Map<string, number>()
  readonly #stopping = new AbortController()
  #open = 0

  /** Acquires a slot. Throws ApiError if none is free. */
  enter(accountId: string): StreamSlot {
    const ofAccount = this.#byAccount.get(accountId) ?? 0
    if (ofAccount >= STREAMS_PER_ACCOUNT_MAX)
      throw requestError('account_streams_exceeded', { max: STREAMS_PER_ACCOUNT_MAX })
    if (this.#open >= STREAMS_MAX) throw requestError('streams_exceeded', { max: STREAMS_MAX })
    this.#open++
    this.#byAccount.set(accountId, ofAccount + 1)
    let isHeld = true
    return {
      stopping: this.#stopping.signal,
      leave: () => {
        if (isHeld) this.#leave(accountId)
        isHeld = false
      },
    }
  }

  /** Closes all streams at shutdown; clients reconnect to the next process. */
  end(): void {
    this.#stopping.abort()
  }

  #leave(accountId: string) {
    this.#open--
    const rest = (this.#byAccount.get(accountId) ?? 0) - 1
    if (rest > 0) this.#byAccount.set(accountId, rest)
    else this.#byAccount.delete(accountId)
  }
}
