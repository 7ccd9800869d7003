import type { Kysely } from 'kysely'
import { breathe } from '../base/clock.ts'
import type { Database } from './database.ts'
import type { Schema } from './schema.ts'

/** Rows looked at in one go: two milliseconds where the JSON of each is read, else less than one. */
export const STRETCH_ROWS = 500

/** Rows that one request looks at, at most: then it answers with what it has, and whoever wants more asks on. */
export const SCANNED_MAX = 100_000

/** The last in the line of those who look. */
const lines = new WeakMap<Kysely<Schema>, Promise<unknown>>()

/**
 * Runs one stretch of looking through many rows. All who look take turns, with a turn of the event loop between: ten
 * that search at the same time take ten times as long, and nobody else waits longer than for one stretch.
 */
export function inStretch<T>({ reader }: Database, look: () => Promise<T>): Promise<T> {
  const before = lines.get(reader) ?? Promise.resolve()
  const turn = before.then(breathe).then(look)
  lines.set(
    reader,
    turn.catch(() => {}),
  )
  return turn
}
