import { ApiError } from './errors/api-error.ts'

/** Each costs a look at the database twice a second; a person has a few pages open. */
export const STREAMS_PER_ACCOUNT_MAX = 20
export const STREAMS_MAX = 1_000

/** One answer that goes on for as long as its client listens. */
export type StreamSlot = {
  /** Aborts when the service stops. */
  readonly stopping: AbortSignal
  /** May be called twice. */
  leave(): void
}

/** The answers that go on for as long as somebody listens. */
export class Streams {
  readonly #byAccount = new Map<string, number>()
  readonly #stopping = new AbortController()
  #open = 0

  /** Takes a place; throws where there is none. */
  enter(accountId: string): StreamSlot {
    const ofAccount = this.#byAccount.get(accountId) ?? 0
    if (ofAccount >= STREAMS_PER_ACCOUNT_MAX) throw tooMany()
    if (this.#open >= STREAMS_MAX) throw tooBusy()
    this.#open++
    this.#byAccount.set(accountId, ofAccount + 1)
    let isIn = true
    return {
      stopping: this.#stopping.signal,
      leave: () => {
        if (isIn) this.#leave(accountId)
        isIn = false
      },
    }
  }

  /** The service stops: whoever listens comes again to the next one. */
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

const tooMany = () =>
  new ApiError(
    'rate_limit',
    `${STREAMS_PER_ACCOUNT_MAX} streams of this account are open: close one, or ask for the job itself`,
    { retryAfterS: 5 },
  )

const tooBusy = () =>
  new ApiError(
    'service_unavailable',
    `${STREAMS_MAX} streams are open, which is all that there may be: ask for the job itself`,
    { retryAfterS: 5 },
  )
