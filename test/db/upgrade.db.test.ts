import { join } from 'node:path'
import { type RawBuilder, sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'
import { type Database, openDatabase } from '../../src/db/database.ts'
import { MIGRATIONS } from '../../src/db/migrate.ts'
import { fakeClock } from '../support/clock.ts'
import {
  emptyDatabase,
  onPostgres,
  openServer,
  tempDatabase,
  tempFolder,
} from '../support/database.ts'
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
    select conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid) as text
    from pg_constraint where connamespace = 'public'::regnamespace and contype <> 'n'`,
]
