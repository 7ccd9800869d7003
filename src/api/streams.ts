import { limitByOwner } from '../platform/owner-limit.ts'
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
  readonly #stopping = new AbortController()
  readonly #enter = limitByOwner({
    ownerMax: STREAMS_PER_ACCOUNT_MAX,
    refuseOwner: max => requestError('account_streams_exceeded', { max }),
    overall: { max: STREAMS_MAX, refuse: max => requestError('streams_exceeded', { max }) },
  })

  /** Acquires a slot. Throws ApiError if none is free. */
  enter(accountId: string): StreamSlot {
    return { leave: this.#enter(accountId), stopping: this.#stopping.signal }
  }

  /** Closes all streams at shutdown; clients reconnect to the next process. */
  end(): void {
    this.#stopping.abort()
  }
}
