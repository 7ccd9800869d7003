import { type Kysely, PostgresAdapter, type RawBuilder, type SelectQueryBuilder, sql } from 'kysely'
import { encodeJson } from './postgres/client.ts'
import type { Schema } from './schema.ts'

// What SQLite and PostgreSQL say differently; everything else is said once, so that both take it.

export const isPostgres = (db: Kysely<Schema> | Kysely<unknown>): boolean =>
  db.getExecutor().adapter instanceof PostgresAdapter

/**
 * Many rows as one parameter, as a table `each` with one column `value`: a statement for each, or of thousands of
 * parameters, costs ten times as much. What `value ->> 'name'` gives has to be cast where it is no text.
 */
export const jsonRows = (db: Kysely<Schema>, rows: readonly unknown[]): RawBuilder<unknown> =>
  isPostgres(db)
    ? sql`json_array_elements(cast(${encodeJson(rows)} as json)) as each(value)`
    : sql`json_each(${JSON.stringify(rows)}) as each`

/**
 * The same with columns that have a type, as in `id bigint, name text`: each row is read once, however often a statement
 * looks at it. On PostgreSQL.
 */
export const typedJsonRows = (rows: readonly object[], columns: string): RawBuilder<unknown> =>
  sql`json_to_recordset(cast(${encodeJson(rows)} as json)) as each(${sql.raw(columns)})`

/** Texts as one parameter, for `in`. */
export const inArray = (db: Kysely<Schema>, texts: readonly string[]): RawBuilder<unknown> =>
  isPostgres(db)
    ? sql`(select json_array_elements_text(cast(${encodeJson(texts)} as json)))`
    : sql`(select value from json_each(${JSON.stringify(texts)}))`

/** Whether a text has another in it. */
export const contains = (
  db: Kysely<Schema>,
  text: RawBuilder<unknown>,
  part: RawBuilder<unknown>,
): RawBuilder<boolean> =>
  isPostgres(db)
    ? sql<boolean>`strpos(${text}, ${part}) > 0`
    : sql<boolean>`instr(${text}, ${part}) > 0`

/** The greater of two numbers. */
export const greatest = (db: Kysely<Schema>, a: RawBuilder<unknown>, b: RawBuilder<unknown>) =>
  isPostgres(db) ? sql<number>`greatest(${a}, ${b})` : sql<number>`max(${a}, ${b})`

/** The lesser of two numbers. */
export const least = (db: Kysely<Schema>, a: RawBuilder<unknown>, b: RawBuilder<unknown>) =>
  isPostgres(db) ? sql<number>`least(${a}, ${b})` : sql<number>`min(${a}, ${b})`

/** Rows that a transaction goes by: nobody changes them before it ends. On SQLite nobody else writes meanwhile anyway. */
export const locking = <Table extends keyof Schema, Row>(
  db: Kysely<Schema>,
  query: SelectQueryBuilder<Schema, Table, Row>,
): SelectQueryBuilder<Schema, Table, Row> =>
  isPostgres(db) && db.isTransaction ? query.forUpdate() : query

/** The text at a place inside JSON that stands in a column; null where there is none. */
export const textAt = (
  db: Kysely<Schema>,
  json: RawBuilder<unknown>,
  path: readonly string[],
): RawBuilder<string | null> =>
  isPostgres(db)
    ? sql`cast(${json} as json) #>> ${sql.lit(`{${path.join(',')}}`)}`
    : sql`${json} ->> ${sql.lit(`$.${path.join('.')}`)}`

/** Whether a text has letters other than those of ASCII: of no others does the database know the case. */
export const hasForeign = (db: Kysely<Schema>, text: RawBuilder<unknown>): RawBuilder<boolean> =>
  isPostgres(db)
    ? sql<boolean>`length(${text}) < octet_length(${text})`
    : sql<boolean>`length(${text}) < length(cast(${text} as blob))`

/** Whether a text begins with U+0000, which each says in another way; SQLite's own functions take a text to end there. */
export const beginsWithNul = (
  db: Kysely<Schema>,
  text: RawBuilder<unknown>,
): RawBuilder<boolean> =>
  isPostgres(db)
    ? sql<boolean>`${text} >= ${'\0'}`
    : sql<boolean>`(${text} < ${'\u0001'} and ${text} <> '')`
