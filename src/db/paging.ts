import { type RawBuilder, sql } from 'kysely'
import { yieldToEventLoop } from '../platform/clock.ts'
import type { Database, Trx } from './database.ts'
import type { Reader } from './reader.ts'
import { isPostgres } from './sql-dialect.ts'

/** Rows per chunk of a scan: 2 ms if the JSON of each row is read, otherwise less than 1 ms. */
export const CHUNK_ROWS = 500

/**
 * PostgreSQL scans outside of our event loop, but each chunk costs a round trip. A chunk of this
 * size takes about 50 ms.
 */
const CHUNK_FACTOR_ON_SERVER = 10

/** Returns the rows per chunk for a database; `rows` is the number for SQLite. */
export const nextChunk = ({ dialect }: Pick<Database, 'dialect'>, rows = CHUNK_ROWS): number =>
  dialect === 'postgres' ? CHUNK_FACTOR_ON_SERVER * rows : rows

/** Rows that one request scans at most. It then returns a partial page with a cursor. */
export const SCANNED_MAX = 100_000

/** The last queued chunk of each database. */
const queues = new WeakMap<Reader, Promise<unknown>>()

/**
 * Runs one chunk of a scan through many rows. On SQLite chunks of concurrent scans run one at a
 * time, in order of arrival, with a turn of the event loop between them, so that other work waits
 * for one chunk at most. On PostgreSQL they only wait for a connection.
 */
export function runChunk<T>(
  { reader, dialect }: Pick<Database, 'reader' | 'dialect'>,
  scan: () => Promise<T>,
): Promise<T> {
  if (dialect === 'postgres') return scan()
  const previous = queues.get(reader) ?? Promise.resolve()
  const chunk = previous.then(yieldToEventLoop).then(scan)
  queues.set(
    reader,
    chunk.catch(() => {}),
  )
  return chunk
}

/**
 * Deletes at most `max` expired rows and returns their number. Several servers may do so at the
 * same time: rows locked by another are skipped until the next run.
 */
export type Expiry = (trx: Trx, before: number, max: number) => Promise<number>

/** Skips locked rows, at the end of a select. Not needed on SQLite, which has one writer. */
export const skipLocked = (trx: Trx, table: string) =>
  isPostgres(trx) ? sql`for update of ${sql.table(table)} skip locked` : sql``

/**
 * Creates the expiry of a table: `key` names the columns of its primary key, and `condition` returns
 * the SQL that selects the expired rows.
 */
export const createExpiry =
  (
    table: string,
    key: readonly string[],
    condition: (before: number) => RawBuilder<unknown>,
  ): Expiry =>
  async (trx, before, max) => {
    const columns = sql.join(key.map(name => sql.ref(name)))
    const { numAffectedRows } = await sql`
      with old as materialized (
        select ${columns} from ${sql.table(table)} where ${condition(before)} limit ${max}
        ${skipLocked(trx, table)})
      delete from ${sql.table(table)} where (${columns}) in (select ${columns} from old)`.execute(
      trx,
    )
    return Number(numAffectedRows ?? 0)
  }

/** A position in rows that are sorted newest first: after the row with these values. */
export type PagePosition = { readonly createdAt: number; readonly id: string }

export type PageRange = {
  /** The last row of the previous page; null: start with the newest. */
  readonly before: PagePosition | null
  /** Exclusive end of the time range, epoch ms. */
  readonly until?: number | undefined
}

/**
 * Combines both bounds into one position: with two upper bounds SQLite would use one of them and
 * test the other row by row.
 */
export function pageStart({ before, until }: PageRange): PagePosition | null {
  if (until === undefined || (before !== null && before.createdAt < until)) return before
  return { createdAt: until, id: '' }
}

/** Selects the rows after a position, which are older. */
export const isAfter = ({ createdAt, id }: PagePosition): RawBuilder<boolean> =>
  sql<boolean>`(created_at, id) < (${createdAt}, ${id})`
