import { type Kysely, type RawBuilder, sql } from 'kysely'
import type { Schema } from '../db/schema.ts'

/** Rows scanned per statement, in about 1 s; the statement timeout is 10 s. */
const PAGE_ROWS = 50_000

/**
 * Runs a query over all rows of a table, page by page in primary key order. Returns all results.
 */
export async function eachPage<Found>(
  db: Kysely<Schema>,
  table: keyof Schema,
  query: (within: RawBuilder<boolean>) => Promise<Found[]>,
  pageRows = PAGE_ROWS,
): Promise<Found[]> {
  const all: Found[] = []
  let last: object | null = null
  do {
    const after: RawBuilder<boolean> = isAfter(table, last)
    last = await lastOfPage(db, table, after, pageRows)
    const within = last === null ? after : sql<boolean>`${after} and ${isUpTo(table, last)}`
    all.push(...(await query(within)))
  } while (last !== null)
  return all
}

/** Returns the key of the last row of the next page; null if less than a page is left. */
async function lastOfPage(
  db: Kysely<Schema>,
  table: keyof Schema,
  after: RawBuilder<boolean>,
  pageRows: number,
): Promise<object | null> {
  const { rows } = await sql<object>`
    select ${keyColumns(table)} from ${sql.table(table)} where ${after}
    order by ${keyColumns(table)} limit 1 offset ${pageRows - 1}`.execute(db)
  return rows[0] ?? null
}

type Table = keyof Schema

/** Primary key of each table, in index order. */
const PRIMARY_KEY = {
  job: ['id'],
  item: ['job_id', 'position'],
  answer: ['address_key'],
  schedule: ['id'],
  account: ['id'],
  api_key: ['id'],
  key_secret: ['hash'],
  person: ['id'],
  recovery_code: ['person_id', 'hash'],
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
  learned_reply: ['network', 'domain', 'reply'],
  witness: ['network', 'server'],
  bucket: ['key'],
  setting: ['name'],
  audit: ['id'],
  feedback: ['account_id', 'dedupe_key'],
  feedback_account: ['account_id'],
  feedback_address: ['address_key', 'account_id'],
  feedback_count: ['account_id', 'period', 'reason', 'operator', 'confidence'],
  feedback_domain: ['domain', 'account_id'],
  feedback_day: ['account_id', 'day', 'source', 'kind'],
  feedback_source: ['id'],
  feedback_reply: ['account_id', 'period', 'operator', 'reply'],
} as const satisfies { readonly [T in Table]: readonly (keyof Schema[T])[] }

/** Columns of a primary key, such as `item.job_id, item.position`. */
const keyColumns = (table: Table): RawBuilder<unknown> =>
  sql.join(PRIMARY_KEY[table].map(column => sql.ref(`${table}.${column}`)))

/** Condition for rows after a row; null matches all rows. */
const isAfter = (table: Table, row: object | null): RawBuilder<boolean> =>
  row === null
    ? sql<boolean>`1 = 1`
    : sql<boolean>`(${keyColumns(table)}) > (${sql.join(keyValues(table, row))})`

/** Condition for rows up to and including a row. */
const isUpTo = (table: Table, row: object): RawBuilder<boolean> =>
  sql<boolean>`(${keyColumns(table)}) <= (${sql.join(keyValues(table, row))})`

const keyValues = (table: Table, row: object) =>
  PRIMARY_KEY[table].map(column => (row as Readonly<Record<string, unknown>>)[column])
