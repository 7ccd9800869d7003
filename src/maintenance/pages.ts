import { type Kysely, type RawBuilder, sql } from 'kysely'
import type { Schema } from '../db/schema.ts'
import { isBehind, isUpTo, keyOf } from './primary-key.ts'

/** Rows that one statement looks through: a second or so, while a server ends what takes longer than ten. */
const PAGE_ROWS = 50_000

/** Asks for something among all rows of a table, page by page in the order of its primary key, and gives all that was found. */
export async function eachPage<Found>(
  db: Kysely<Schema>,
  table: keyof Schema,
  look: (within: RawBuilder<boolean>) => Promise<Found[]>,
  pageRows = PAGE_ROWS,
): Promise<Found[]> {
  const all: Found[] = []
  let last: object | null = null
  do {
    const behind: RawBuilder<boolean> = isBehind(table, last)
    last = await lastOfPage(db, table, behind, pageRows)
    const within = last === null ? behind : sql<boolean>`${behind} and ${isUpTo(table, last)}`
    all.push(...(await look(within)))
  } while (last !== null)
  return all
}

/** Null: what is left is less than a page. */
async function lastOfPage(
  db: Kysely<Schema>,
  table: keyof Schema,
  behind: RawBuilder<boolean>,
  pageRows: number,
): Promise<object | null> {
  const { rows } = await sql<object>`
    select ${keyOf(table)} from ${sql.table(table)} where ${behind}
    order by ${keyOf(table)} limit 1 offset ${pageRows - 1}`.execute(db)
  return rows[0] ?? null
}
