import { Kysely, PostgresDialect, type PostgresPool, type PostgresPoolClient } from 'kysely'
import pg from 'pg'
import type { Clock } from '../../platform/clock.ts'
import { codeOf } from '../error-code.ts'
import type { Schema } from '../schema.ts'
import { cutOff, decodeText, encodeText, namingClient } from './client.ts'
import { ConnectBackoff, isRefusal } from './connect-backoff.ts'
import { isOutage } from './errors.ts'
import { DEFAULT_POOL_TIMINGS, type PoolTimings } from './pool-timings.ts'

export type PoolOptions = {
  /** Connections at the same time. */
  readonly max: number
  /** What PostgreSQL shows for its connections; `ev` when left out. */
  readonly name?: string
  /** For what a power cut may undo without harm: a commit does not wait for the disk. */
  readonly isAsync?: boolean
  /** How long a statement may take, ms; null: as long as it likes, for what makes or moves tables. */
  readonly statementMs?: number | null
  /** How much longer we wait for a server that does not end it by itself, ms. */
  readonly silenceMs?: number
  readonly timings?: PoolTimings
  /** Shared with other pools of this server. */
  readonly backoff?: ConnectBackoff
}

/** Connections to a PostgreSQL server. One that is lost is replaced by the next that is needed. */
export function openPool(
  url: string,
  clock: Clock,
  { max, name = 'ev', isAsync: loose = false, timings = DEFAULT_POOL_TIMINGS, ...own }: PoolOptions,
): pg.Pool {
  const { statementMs, silenceMs } = { ...timings, ...own }
  const { backoff = new ConnectBackoff(clock, timings) } = own
  const pool = new SharingPool(backoff, {
    Client: namingClient(clock, backoff),
    connectionString: url,
    max,
    application_name: name,
    connectionTimeoutMillis: timings.connectMs,
    idleTimeoutMillis: timings.idleMs,
    statement_timeout: statementMs ?? 0,
    ...(statementMs === null ? {} : { query_timeout: statementMs + silenceMs }),
    idle_in_transaction_session_timeout: timings.idleInTransactionMs,
    keepAlive: true,
    types: { getTypeParser },
    ...(loose ? { options: '-c synchronous_commit=off' } : {}),
  })
  // Whoever needs a connection next is told, and whoever has one by its next statement; without listeners the process would end.
  pool.on('error', () => {})
  pool.on('connect', client => void client.on('error', () => {}))
  return pool
}

/** Where the server refuses a further connection, what is asked waits for one that the pool has. */
class SharingPool extends pg.Pool {
  readonly #backoff: ConnectBackoff
  readonly #max: number

  constructor(backoff: ConnectBackoff, options: pg.PoolConfig & { readonly max: number }) {
    super(options)
    this.#backoff = backoff
    this.#max = options.max
  }

  override connect(): Promise<pg.PoolClient>
  override connect(logged: LogState): void
  override connect(logged?: LogState): Promise<pg.PoolClient> | undefined {
    if (logged !== undefined) return void super.connect(logged)
    return this.#connect()
  }

  async #connect(): Promise<pg.PoolClient> {
    for (;;) {
      // A pool that is full does not connect.
      const isRefused = this.#backoff.refusal !== null
      this.options.max = isRefused ? Math.max(1, this.totalCount) : this.#max
      try {
        return await super.connect()
      } catch (error) {
        if (!isRefusal(error) || this.totalCount === 0) throw error
      }
    }
  }
}

type LogState = Parameters<pg.Pool['connect']>[0]

/** Queries over a pool. */
export const kyselyOn = (pool: pg.Pool): Kysely<Schema> =>
  new Kysely<Schema>({ dialect: new PostgresDialect({ pool: guarded(pool) }) })

function guarded(pool: pg.Pool): PostgresPool {
  return {
    options: pool.options,
    end: () => pool.end(),
    connect: async () => guardedClient(await pool.connect()),
  } as unknown as PostgresPool
}

/**
 * Parameters go in as the database can store them. A connection that was cut off, or did not answer in time, stays
 * broken: what is asked of it after that fails at once, and nobody gets it again. Whoever asks more of a transaction that
 * an error undid is told that error.
 */
function guardedClient(client: pg.PoolClient): PostgresPoolClient {
  const inner = client as unknown as PostgresPoolClient
  let broken: unknown = null
  let last: unknown = null
  return {
    processID: inner.processID,
    release(isDiscarded?: boolean) {
      if (broken !== null) cutOff(client)
      client.release(broken !== null || isDiscarded === true)
    },
    async query(text: never, values?: readonly unknown[]) {
      if (broken !== null) throw broken
      try {
        const result = await inner.query(text, values?.map(encoded) as never)
        last = null
        return result
      } catch (error) {
        if (codeOf(error) === IN_FAILED_TRANSACTION && last !== null) throw last
        last = error
        if (endsConnection(error)) broken = error
        throw error
      }
    },
  } as unknown as PostgresPoolClient
}

/** SQLSTATE. */
const IN_FAILED_TRANSACTION = '25P02'

/** A statement that the server itself ended, or had no room for, leaves its connection whole. */
const endsConnection = (error: unknown) =>
  isOutage(error) && !(error instanceof pg.DatabaseError && error.severity !== 'FATAL')

const encoded = (value: unknown) => (typeof value === 'string' ? encodeText(value) : value)

const { builtins } = pg.types

/** Numbers as numbers, whatever their width: ours are times and counts, all below 2^53. */
const PARSERS = new Map<number, (text: string) => unknown>([
  [builtins.INT8, Number],
  [builtins.NUMERIC, Number],
  [builtins.TEXT, decodeText],
  [builtins.VARCHAR, decodeText],
])

const getTypeParser = ((id: number, format: 'text' | 'binary') =>
  PARSERS.get(id) ?? pg.types.getTypeParser(id, format as 'text')) as typeof pg.types.getTypeParser
