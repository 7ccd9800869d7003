import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { type RawBuilder, sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'
import { type Database, openDatabase } from '../../src/db/database.ts'
import { MIGRATIONS } from '../../src/db/migrate.ts'
import { fakeClock } from '../support/clock.ts'
import { emptyDatabase, onPostgres, tempDatabase, tempFolder } from '../support/database.ts'
import { openServer } from '../support/postgres-pool.ts'
import { ask } from '../support/postgres-server.ts'
import { restorePostgres, restoreSqlite } from '../support/released-database.ts'

test('a database of version 0.2.0 gets the tables and indexes of a new one, and keeps its rows', async () => {
  const upgraded = await (onPostgres ? openReleasedServer() : openReleasedFile())
  onTestFinished(() => upgraded.close())
  expect(await describeSchema(upgraded)).toEqual(await describeSchema(await tempDatabase()))
  const { rows } = await sql<{ name: string }>`
    select name from kysely_migration order by name`.execute(upgraded.db)
  expect(rows.map(({ name }) => name)).toEqual(Object.keys(MIGRATIONS))
  const { rows: jobs } = await sql<{ state: string; total: number }>`
    select state, total from job order by created_at`.execute(upgraded.db)
  expect(jobs).toEqual([
    { state: 'completed', total: 4 },
    { state: 'completed', total: 2 },
    { state: 'processing', total: 2 },
  ])
})

test('what version 0.2.0 writes can still be written: its columns are kept, and others may be left out', async () => {
  const before = await readReleasedColumns()
  const upgraded = await (onPostgres ? openReleasedServer() : openReleasedFile())
  onTestFinished(() => upgraded.close())
  const { rows } = await sql
    .raw<Column>(onPostgres ? SERVER_COLUMNS : FILE_COLUMNS)
    .execute(upgraded.db)
  const after = new Map(rows.map(column => [column.name, column]))
  const changed = before.filter(({ name, type, required }) => {
    const now = after.get(name)
    return now?.type !== type || Number(now.required) > Number(required)
  })
  expect(changed).toEqual([])
  const tables = new Set(before.map(tableOf))
  const known = new Set(before.map(({ name }) => name))
  const added = rows.filter(column => tables.has(tableOf(column)) && !known.has(column.name))
  expect(added.filter(({ required }) => Number(required) === 1)).toEqual([])
})

type Column = { readonly name: string; readonly type: string; readonly required: boolean | number }

const tableOf = ({ name }: Column) => name.split('.')[0]

/** A column is required if an insert without it fails. */
const FILE_COLUMNS = `
  select t.name || '.' || c.name as name, lower(c.type) as type,
    c."notnull" = 1 and c.dflt_value is null as required
  from sqlite_master t, pragma_table_info(t.name) c where t.type = 'table'`
const SERVER_COLUMNS = `
  select table_name || '.' || column_name as name, data_type as type,
    is_nullable = 'NO' and column_default is null as required
  from information_schema.columns where table_schema = 'public'`

/** Returns the columns of version 0.2.0. */
async function readReleasedColumns(): Promise<readonly Column[]> {
  if (onPostgres) {
    const url = await emptyDatabase()
    await restorePostgres(url)
    return ask<Column>(url, SERVER_COLUMNS)
  }
  const file = join(tempFolder(), 'released.sqlite')
  restoreSqlite(file)
  const database = new Sqlite(file, { readonly: true })
  const columns = database.prepare(FILE_COLUMNS).all() as Column[]
  database.close()
  return columns
}

async function openReleasedFile(): Promise<Database> {
  const file = join(tempFolder(), 'released.sqlite')
  restoreSqlite(file)
  return openDatabase(`sqlite:${file}`, fakeClock())
}

async function openReleasedServer(): Promise<Database> {
  const url = await emptyDatabase()
  await restorePostgres(url)
  return openServer(url)
}

/** Returns the columns and indexes of all tables, sorted. */
async function describeSchema({ db, dialect }: Database): Promise<string[]> {
  const queries: RawBuilder<{ text: string }>[] =
    dialect === 'postgres' ? POSTGRES_SCHEMA : SQLITE_SCHEMA
  const results = await Promise.all(queries.map(query => query.execute(db)))
  const lines = results.flatMap(({ rows }) => rows.map(({ text }) => text))
  expect(lines.length).toBeGreaterThan(100)
  return lines.toSorted()
}

const SQLITE_SCHEMA = [
  sql<{ text: string }>`
    select t.name || '.' || c.name || ' ' || c.type || ' ' || c."notnull" || ' '
      || coalesce(c.dflt_value, '') as text
    from sqlite_master t, pragma_table_info(t.name) c where t.type = 'table'`,
  sql<{ text: string }>`select sql as text from sqlite_master where type = 'index' and sql <> ''`,
]

const POSTGRES_SCHEMA = [
  sql<{ text: string }>`
    select concat_ws(' ', table_name, column_name, data_type, is_nullable, column_default,
      collation_name) as text
    from information_schema.columns where table_schema = 'public'`,
  sql<{ text: string }>`select indexdef as text from pg_indexes where schemaname = 'public'`,
  sql<{ text: string }>`
    select concat_ws(' ', relname, relpersistence) as text
    from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'`,
  sql<{ text: string }>`
    select conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid) as text
    from pg_constraint where connamespace = 'public'::regnamespace and contype <> 'n'`,
]
