import { type Kysely, PostgresAdapter, type RawBuilder, type SelectQueryBuilder, sql } from 'kysely'
import { encodeArray, encodeJson } from './postgres/encoding.ts'
import type { Reader } from './reader.ts'
import type { Schema } from './schema.ts'

// SQL that differs between SQLite and PostgreSQL. All other SQL is portable.

export const isPostgres = (db: Pick<Kysely<unknown>, 'getExecutor'>): boolean =>
  db.getExecutor().adapter instanceof PostgresAdapter

/**
 * Passes rows in one JSON parameter and exposes them as a table `each` with one column `value`. A
 * statement per row, or one with thousands of parameters, costs ten times as much. Cast the result
 * of `value ->> 'name'` unless it is text.
 */
export const jsonRows = (db: Reader, rows: readonly unknown[]): RawBuilder<unknown> =>
  isPostgres(db)
    ? sql`json_array_elements(cast(${encodeJson(rows)} as json)) as each(value)`
    : sql`json_each(${JSON.stringify(rows)}) as each`

/**
 * As `jsonRows`, with typed columns such as `id bigint, name text`: an array per column, which the
 * server reads with half of the time for JSON. PostgreSQL only.
 */
export function typedRows(rows: readonly object[], columns: string): RawBuilder<unknown> {
  const list = columns.split(',').map(column => {
    const [, name = '', type = ''] = /^\s*"?(\w+)"? (\w+)\s*$/.exec(column) ?? []
    return { name, type }
  })
  const arrays = list.map(({ name, type }) => {
    const values = rows.map(row => row[name as keyof typeof row])
    return sql`cast(${encodeArray(values)} as ${sql.raw(type)}[])`
  })
  const names = list.map(({ name }) => sql.id(name))
  return sql`unnest(${sql.join(arrays)}) as each(${sql.join(names)})`
}

/** Passes texts in one parameter, for `in`. */
export const inArray = (db: Reader, texts: readonly string[]): RawBuilder<unknown> =>
  isPostgres(db)
    ? sql`(select json_array_elements_text(cast(${encodeJson(texts)} as json)))`
    : sql`(select value from json_each(${JSON.stringify(texts)}))`

/** Whether a text contains another. */
export const contains = (
  db: Reader,
  text: RawBuilder<unknown>,
  part: RawBuilder<unknown>,
): RawBuilder<boolean> =>
  isPostgres(db)
    ? sql<boolean>`strpos(${text}, ${part}) > 0`
    : sql<boolean>`instr(${text}, ${part}) > 0`

/** The greater of two numbers. */
export const greatest = (db: Reader, a: RawBuilder<unknown>, b: RawBuilder<unknown>) =>
  isPostgres(db) ? sql<number>`greatest(${a}, ${b})` : sql<number>`max(${a}, ${b})`

/**
 * Locks the selected rows until the transaction ends. Not needed on SQLite, which has one writer at
 * a time.
 */
export const locking = <Table extends keyof Schema, Row>(
  db: Reader,
  query: SelectQueryBuilder<Schema, Table, Row>,
): SelectQueryBuilder<Schema, Table, Row> =>
  isPostgres(db) && db.isTransaction ? query.forUpdate() : query

/** Returns the text at a path of a JSON column; null if the path does not exist. */
export const textAt = (
  db: Reader,
  json: RawBuilder<unknown>,
  path: readonly string[],
): RawBuilder<string | null> =>
  isPostgres(db)
    ? sql`cast(${json} as json) #>> ${sql.lit(`{${path.join(',')}}`)}`
    : sql`${json} ->> ${sql.lit(`$.${path.join('.')}`)}`

/** Whether a text has non-ASCII characters, whose case the database does not fold. */
export const hasNonAscii = (db: Reader, text: RawBuilder<unknown>): RawBuilder<boolean> =>
  isPostgres(db)
    ? sql<boolean>`length(${text}) < octet_length(${text})`
    : sql<boolean>`length(${text}) < length(cast(${text} as blob))`

/** Whether a text starts with U+0000. SQLite's string functions treat it as the end of the text. */
export const startsWithNul = (db: Reader, text: RawBuilder<unknown>): RawBuilder<boolean> =>
  isPostgres(db)
    ? sql<boolean>`${text} >= ${'\0'}`
    : sql<boolean>`(${text} < ${'\u0001'} and ${text} <> '')`
