import type { Kysely } from 'kysely'
import { yieldToEventLoop } from '../platform/clock.ts'
import type { Database } from './database.ts'
import type { Schema } from './schema.ts'

/** Rows per chunk of a scan: 2 ms if the JSON of each row is read, otherwise less than 1 ms. */
export const CHUNK_ROWS = 500

/**
 * PostgreSQL scans outside of our event loop, but each chunk costs a round trip. A chunk of this
 * size takes some 50 ms.
 */
const CHUNK_FACTOR_ON_SERVER = 10

/** Returns the rows per chunk for a database; `rows` is the number for SQLite. */
export const nextChunk = ({ dialect }: Pick<Database, 'dialect'>, rows = CHUNK_ROWS): number =>
  dialect === 'postgres' ? CHUNK_FACTOR_ON_SERVER * rows : rows

/** Rows that one request scans at most. It then returns a partial page with a cursor. */
export const SCANNED_MAX = 100_000

/** The last queued chunk of each database. */
const queues = new WeakMap<Kysely<Schema>, Promise<unknown>>()

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
