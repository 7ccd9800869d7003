import type { Kysely } from 'kysely'
import { yieldToEventLoop } from '../platform/clock.ts'
import type { Database } from './database.ts'
import type { Schema } from './schema.ts'

/** Rows looked at in one go: two milliseconds where the JSON of each is read, else less than one. */
export const CHUNK_ROWS = 500

/** PostgreSQL looks through them beside our event loop, but each stretch costs a round trip: as many take some 50 ms. */
const CHUNK_FACTOR_ON_SERVER = 10

/** Rows that are looked at in one go, here; `rows` as SQLite would, where that is not the usual number. */
export const nextChunk = ({ dialect }: Pick<Database, 'dialect'>, rows = CHUNK_ROWS): number =>
  dialect === 'postgres' ? CHUNK_FACTOR_ON_SERVER * rows : rows

/** Rows that one request looks at, at most: then it answers with what it has, and whoever wants more asks on. */
export const SCANNED_MAX = 100_000

/** The last in the line of those who look. */
const lines = new WeakMap<Kysely<Schema>, Promise<unknown>>()

/**
 * Runs one stretch of looking through many rows. All who look take turns, with a turn of the event loop between: ten
 * that search at the same time take ten times as long, and nobody else waits longer than for one stretch. On PostgreSQL
 * they wait for nobody but for a connection, in turn as well.
 */
export function inChunk<T>(
  { reader, dialect }: Pick<Database, 'reader' | 'dialect'>,
  look: () => Promise<T>,
): Promise<T> {
  if (dialect === 'postgres') return look()
  const before = lines.get(reader) ?? Promise.resolve()
  const turn = before.then(yieldToEventLoop).then(look)
  lines.set(
    reader,
    turn.catch(() => {}),
  )
  return turn
}
