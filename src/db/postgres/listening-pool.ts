import type pg from 'pg'
import { type Clock, SECOND, sleep } from '../../platform/clock.ts'
import { openPool, type PoolOptions } from './pool.ts'

/** Wait before a connection that was lost is replaced. */
const RECONNECT_MS = SECOND
/** How often the connection is tested: one that died silently delivers nothing. As in pg-boss. */
const CHECK_MS = 10 * SECOND

type OnNotification = (payload: string) => void

/** A pool of connections to PostgreSQL, one of which listens for notifications. */
export class ListeningPool {
  readonly #pool: pg.Pool
  readonly #clock: Clock
  /** Process IDs of the server for the connections of this pool. */
  readonly #own = new Set<number>()
  #isListening = false

  constructor(url: string, clock: Clock, options: PoolOptions) {
    this.#clock = clock
    this.#pool = openPool(url, clock, options)
    this.#pool.on('connect', client => this.#own.add(processIdOf(client)))
    this.#pool.on('remove', client => this.#own.delete(processIdOf(client)))
  }

  /** False while notifications may get lost. */
  get isListening(): boolean {
    return this.#isListening
  }

  executeSql(text: string, values?: unknown[]): Promise<pg.QueryResult> {
    return this.#pool.query(text, values)
  }

  /**
   * Calls `onNotification` for each notification that is not from this pool, and `onReconnect`
   * whenever it has begun to listen: what was sent before is lost. A connection that breaks is replaced.
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

  /** Resolves or fails when the connection is lost. */
  async #listenOnce(closing: AbortSignal, { channel, ...how }: Listening): Promise<void> {
    const client = await this.#pool.connect()
    const broken = new AbortController()
    const over = AbortSignal.any([closing, broken.signal])
    client.on('error', () => broken.abort())
    client.on('notification', ({ payload = '', processId }) => {
      if (!this.#own.has(processId)) how.onNotification(payload)
    })
    try {
      await client.query(`listen "${channel}"`)
      this.#isListening = true
      how.onReconnect()
      while (!over.aborted) {
        await sleep(this.#clock, CHECK_MS, over)
        if (!over.aborted) await client.query('select 1')
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

/** pg has it, and its types leave it out. */
const processIdOf = (client: pg.PoolClient) =>
  (client as unknown as { readonly processID: number }).processID
