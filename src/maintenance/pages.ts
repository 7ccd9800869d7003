import { type Kysely, type RawBuilder, sql } from 'kysely'
import type { Schema } from '../db/schema.ts'

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

type Table = keyof Schema

/** By which the rows of each table are told apart, in the order of its index. */
const PRIMARY_KEY = {
  job: ['id'],
  item: ['job_id', 'position'],
  answer: ['address_key'],
  account: ['id'],
  api_key: ['id'],
  key_secret: ['hash'],
  session: ['id'],
  credit: ['account_id', 'period_start'],
  usage: ['account_id', 'day', 'key_id', 'class'],
  verification: ['account_id', 'sandbox', 'created_at', 'id'],
  event: ['id'],
  webhook: ['id'],
  delivery: ['id'],
  attempt: ['delivery_id', 'number'],
  notice: ['webhook_id'],
  replay: ['key_id', 'idempotency_key'],
  member: ['id'],
  hold: ['member_id', 'account_id', 'period_start'],
  pace: ['operator', 'egress'],
  catch_all: ['domain'],
  bucket: ['key'],
  setting: ['name'],
} as const satisfies { readonly [T in Table]: readonly (keyof Schema[T])[] }

/** The columns of a primary key, such as `item.job_id, item.position`. */
const keyOf = (table: Table): RawBuilder<unknown> =>
  sql.join(PRIMARY_KEY[table].map(column => sql.ref(`${table}.${column}`)))

/** Which rows come behind a row; null: all do. */
const isBehind = (table: Table, row: object | null): RawBuilder<boolean> =>
  row === null
    ? sql<boolean>`1 = 1`
    : sql<boolean>`(${keyOf(table)}) > (${sql.join(keyValues(table, row))})`

/** Which rows come before a row, or are that one. */
const isUpTo = (table: Table, row: object): RawBuilder<boolean> =>
  sql<boolean>`(${keyOf(table)}) <= (${sql.join(keyValues(table, row))})`

const keyValues = (table: Table, row: object) =>
  PRIMARY_KEY[table].map(column => (row as Readonly<Record<string, unknown>>)[column])
