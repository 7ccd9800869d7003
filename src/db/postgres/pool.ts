import { Kysely, PostgresDialect, type PostgresPool, type PostgresPoolClient } from 'kysely'
import pg from 'pg'
import type { Clock } from '../../platform/clock.ts'
import type { Schema } from '../schema.ts'
import { connectionString, createClientClass, cutOff } from './client.ts'
import {
  ConnectBackoff,
  DEFAULT_POOL_TIMINGS,
  isRefusal,
  type PoolTimings,
} from './connect-backoff.ts'
import { decodeText, encodeText } from './encoding.ts'
import { codeOf, isOutage, isReadOnly } from './errors.ts'

export type PoolOptions = {
  /** Maximum number of connections. */
  readonly max: number
  /** `application_name`. Default: `ev`. */
  readonly name?: string
  /** `synchronous_commit=off`: commits do not wait for the disk; a power cut may lose them. */
  readonly asyncCommit?: boolean
  /** Statement timeout, ms; null for no limit, as for migrations and copies. */
  readonly statementMs?: number | null
  /** Additional wait for a server that does not enforce the statement timeout, ms. */
  readonly silenceMs?: number
  readonly timings?: PoolTimings
  /** Connection backoff, shared with other pools of the server. */
  readonly backoff?: ConnectBackoff
}

/** Opens a connection pool. A lost connection is replaced on demand. */
export function openPool(
  url: string,
  clock: Clock,
  { max, name = 'ev', asyncCommit = false, timings = DEFAULT_POOL_TIMINGS, ...rest }: PoolOptions,
): pg.Pool {
  const { statementMs, silenceMs } = { ...timings, ...rest }
  const { backoff = new ConnectBackoff(clock, timings) } = rest
  const settings = `set statement_timeout = ${statementMs ?? 0};
    set idle_in_transaction_session_timeout = ${timings.idleInTransactionMs};
    set synchronous_commit = ${asyncCommit ? 'off' : 'default'}`
  const pool = new SharingPool(backoff, {
    Client: createClientClass(clock, backoff),
    connectionString: connectionString(url),
    max,
    application_name: name,
    connectionTimeoutMillis: timings.connectMs,
    idleTimeoutMillis: timings.idleMs,
    ...(statementMs === null ? {} : { query_timeout: statementMs + silenceMs }),
    keepAlive: true,
    types: { getTypeParser },
    // PgBouncer refuses most settings in the startup message, so they are set afterwards.
    onConnect: client => client.query(settings),
  })
  // The next connect or statement reports the error. Without listeners it would end the process.
  pool.on('error', () => {})
  pool.on('connect', client => void client.on('error', () => {}))
  return pool
}

/** A pool whose queries wait for an open connection while the server refuses further ones. */
class SharingPool extends pg.Pool {
  readonly #backoff: ConnectBackoff
  readonly #max: number

  constructor(backoff: ConnectBackoff, options: pg.PoolConfig & { readonly max: number }) {
    super(options)
    this.#backoff = backoff
    this.#max = options.max
  }

  override connect(): Promise<pg.PoolClient>
  override connect(onConnect: ConnectCallback): void
  override connect(onConnect?: ConnectCallback): Promise<pg.PoolClient> | undefined {
    if (onConnect !== undefined) return void super.connect(onConnect)
    return this.#connect()
  }

  async #connect(): Promise<pg.PoolClient> {
    for (;;) {
      // With `max` reached the pool opens no connection.
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

type ConnectCallback = Parameters<pg.Pool['connect']>[0]

/** Returns a query builder for a pool. */
export const createPostgresKysely = (pool: pg.Pool): Kysely<Schema> =>
  new Kysely<Schema>({ dialect: new PostgresDialect({ pool: wrapPool(pool) }) })

function wrapPool(pool: pg.Pool): PostgresPool {
  return {
    options: pool.options,
    end: () => pool.end(),
    connect: async () => wrapClient(await pool.connect()),
  } as unknown as PostgresPool
}

/**
 * Wraps a client. It encodes parameters. A connection that was lost or timed out stays broken:
 * later queries fail immediately, and the pool discards it. Further queries of a failed transaction
 * reject with the error that failed it.
 */
function wrapClient(client: pg.PoolClient): PostgresPoolClient {
  const inner = client as unknown as PostgresPoolClient
  let brokenBy: unknown = null
  let lastError: unknown = null
  return {
    processID: inner.processID,
    release(isDiscarded?: boolean) {
      if (brokenBy !== null) cutOff(client)
      client.release(brokenBy !== null || isDiscarded === true)
    },
    async query(text: never, values?: readonly unknown[]) {
      if (brokenBy !== null) throw brokenBy
      try {
        const result = await inner.query(text, values?.map(encoded) as never)
        lastError = null
        return result
      } catch (error) {
        if (codeOf(error) === IN_FAILED_TRANSACTION && lastError !== null) throw lastError
        lastError = error
        if (endsConnection(error)) brokenBy = error
        throw error
      }
    },
  } as unknown as PostgresPoolClient
}

/** SQLSTATE: in_failed_sql_transaction. */
const IN_FAILED_TRANSACTION = '25P02'

/** A statement that the server cancelled or had no resources for leaves the connection usable. */
const endsConnection = (error: unknown) =>
  isReadOnly(error) ||
  (isOutage(error) && !(error instanceof pg.DatabaseError && error.severity !== 'FATAL'))

const encoded = (value: unknown) => (typeof value === 'string' ? encodeText(value) : value)

const { builtins } = pg.types

/** Returns 64-bit integers as numbers: those of ev are times and counts, all below 2^53. */
const PARSERS = new Map<number, (text: string) => unknown>([
  [builtins.INT8, Number],
  [builtins.NUMERIC, Number],
  [builtins.TEXT, decodeText],
  [builtins.VARCHAR, decodeText],
])

const getTypeParser = ((id: number, format: 'text' | 'binary') =>
  PARSERS.get(id) ?? pg.types.getTypeParser(id, format as 'text')) as typeof pg.types.getTypeParser
