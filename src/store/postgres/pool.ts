import { Kysely, PostgresDialect, type PostgresPool, type PostgresPoolClient } from 'kysely'
import pg from 'pg'
import { SECOND } from '../../base/clock.ts'
import type { Schema } from '../schema.ts'
import { decodeText, encodeText } from './text-codec.ts'

/** A database that does not let anybody in within this time is told as one that cannot be had. */
const CONNECT_MS = 5 * SECOND
/** No statement of ours takes longer but for those that make or move tables; a frozen server is noticed by it. */
const STATEMENT_MS = 10 * SECOND
/** A transaction of ours waits for nobody: one that stands still is that of a process which does. */
const IDLE_IN_TRANSACTION_MS = 30 * SECOND

export type PoolOptions = {
  /** Connections at the same time. */
  readonly max: number
  /** For what a power cut may undo without harm: a commit does not wait for the disk. */
  readonly loose?: boolean
}

/** Connections to a PostgreSQL server. One that is lost while nobody uses it is replaced by the next that is needed. */
export function openPool(url: string, { max, loose = false }: PoolOptions): pg.Pool {
  const pool = new pg.Pool({
    connectionString: url,
    max,
    application_name: 'ev',
    connectionTimeoutMillis: CONNECT_MS,
    idleTimeoutMillis: 30 * SECOND,
    statement_timeout: STATEMENT_MS,
    // The server may be frozen, or gone without a word: then it ends nothing by itself.
    query_timeout: STATEMENT_MS + 2 * SECOND,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS,
    keepAlive: true,
    types: { getTypeParser },
    ...(loose ? { options: '-c synchronous_commit=off' } : {}),
  })
  // Whoever needs a connection next is told; without a listener the process would end.
  pool.on('error', () => {})
  return pool
}

/** Queries over a pool. */
export const kyselyOn = (pool: pg.Pool): Kysely<Schema> =>
  new Kysely<Schema>({ dialect: new PostgresDialect({ pool: encoding(pool) }) })

/** Parameters go in as the database can store them. */
function encoding(pool: pg.Pool): PostgresPool {
  return {
    options: pool.options,
    end: () => pool.end(),
    async connect() {
      const client = await pool.connect()
      const inner = client as unknown as PostgresPoolClient
      return {
        release: () => client.release(),
        processID: inner.processID,
        query: (text: never, values: readonly unknown[]) =>
          inner.query(text, values?.map(encoded) as never),
      } as unknown as PostgresPoolClient
    },
  }
}

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
