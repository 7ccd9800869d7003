import { type RawBuilder, sql } from 'kysely'
import type { Schema } from '../db/schema.ts'

type Table = keyof Schema

/** By which the rows of each table are told apart, in the order of its index. */
export const PRIMARY_KEY = {
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
export const keyOf = (table: Table): RawBuilder<unknown> =>
  sql.join(PRIMARY_KEY[table].map(column => sql.ref(`${table}.${column}`)))

/** Which rows come behind a row; null: all do. */
export const isBehind = (table: Table, row: object | null): RawBuilder<boolean> =>
  row === null
    ? sql<boolean>`1 = 1`
    : sql<boolean>`(${keyOf(table)}) > (${sql.join(keyValues(table, row))})`

/** Which rows come before a row, or are that one. */
export const isUpTo = (table: Table, row: object): RawBuilder<boolean> =>
  sql<boolean>`(${keyOf(table)}) <= (${sql.join(keyValues(table, row))})`

const keyValues = (table: Table, row: object) =>
  PRIMARY_KEY[table].map(column => (row as Readonly<Record<string, unknown>>)[column])
