import type pg from 'pg'
import { type Clock, SECOND, sleep } from '../../platform/clock.ts'
import { openPool, type PoolOptions } from './pool.ts'

/** Wait before a lost connection is replaced. */
const RECONNECT_MS = SECOND
/** Interval of the connection check, as in pg-boss: a dead connection may report no error. */
const CHECK_MS = 10 * SECOND

type OnNotification = (payload: string) => void

/** A connection pool in which one connection listens for notifications. */
export class ListeningPool {
  readonly #pool: pg.Pool
  readonly #clock: Clock
  /** Backend process IDs of the connections of this pool. */
  readonly #ownProcessIds = new Set<number>()
  #isListening = false

  constructor(url: string, clock: Clock, options: PoolOptions) {
    this.#clock = clock
    this.#pool = openPool(url, clock, options)
    this.#pool.on('connect', client => this.#ownProcessIds.add(processIdOf(client)))
    this.#pool.on('remove', client => this.#ownProcessIds.delete(processIdOf(client)))
  }

  /** False while notifications may be lost. */
  get isListening(): boolean {
    return this.#isListening
  }

  executeSql(text: string, values?: unknown[]): Promise<pg.QueryResult> {
    return this.#pool.query(text, values)
  }

  /**
   * Calls `onNotification` for each notification from outside this pool, and `onReconnect` each
   * time it starts to listen, as earlier notifications are lost. Replaces a broken connection.
   */
  async listen(channel: string, onNotification: OnNotification, onReconnect: () => void) {
    const closing = new AbortController()
    const listening = this.#listen(closing.signal, { channel, onNotification, onReconnect })
    return {
      async close() {
        closing.abort()
        await listening
      },
    }
  }

  end(): Promise<void> {
    return this.#pool.end()
  }

  async #listen(closing: AbortSignal, how: Listening): Promise<void> {
    while (!closing.aborted) {
      await this.#listenOnce(closing, how).catch(() => {})
      this.#isListening = false
      await sleep(this.#clock, RECONNECT_MS, closing)
    }
  }

  /** Resolves or rejects when the connection is lost. */
  async #listenOnce(closing: AbortSignal, { channel, ...how }: Listening): Promise<void> {
    const client = await this.#pool.connect()
    const broken = new AbortController()
    const ended = AbortSignal.any([closing, broken.signal])
    client.on('error', () => broken.abort())
    client.on('notification', ({ payload = '', processId }) => {
      if (!this.#ownProcessIds.has(processId)) how.onNotification(payload)
    })
    try {
      await client.query(`listen "${channel}"`)
      this.#isListening = true
      how.onReconnect()
      while (!ended.aborted) {
        await sleep(this.#clock, CHECK_MS, ended)
        if (!ended.aborted) await client.query('select 1')
      }
    } finally {
      client.release(true)
    }
  }
}

type Listening = {
  readonly channel: string
  readonly onNotification: OnNotification
  readonly onReconnect: () => void
}

/** `processID` is missing in the types of pg. */
const processIdOf = (client: pg.PoolClient) =>
  (client as unknown as { readonly processID: number }).processID
