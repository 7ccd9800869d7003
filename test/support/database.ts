import { randomUUID } from 'node:crypto'
import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { sql } from 'kysely'
import pg from 'pg'
import { inject, onTestFinished } from 'vitest'
import { type Database, openDatabase, write } from '../../src/db/database.ts'
import { TABLES } from '../../src/db/schema.ts'
import { SteadyClock } from '../../src/db/steady-clock.ts'
import { addItems } from '../../src/jobs/import/item-import.ts'
import { queuedItems, storeRoutes } from '../../src/jobs/item-store.ts'
import { startJob } from '../../src/jobs/job-state.ts'
import { createJob, type Job } from '../../src/jobs/job-store.ts'
import { type Clock, systemClock } from '../../src/platform/clock.ts'
import { type FakeClock, fakeClock } from './clock.ts'
import { FAST_TIMINGS } from './fast-timings.ts'
import { ask } from './postgres-server.ts'
import { TEMPLATE } from './postgres-setup.ts'
import { queueJob } from './queue-job.ts'
import { pooledSqlite } from './sqlite-pool.ts'

/** Creates an empty folder, which is deleted after the test. */
export function tempFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'ev-store-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Store tests run twice: on SQLite, and on a real PostgreSQL server. */
export const onPostgres = process.env.EV_TEST_DATABASE === 'postgres'

/**
 * Opens an empty database for one test: in `file`, else temporary, or on PostgreSQL if this run
 * uses it.
 */
export async function tempDatabase(
  options: { clock?: Clock; file?: string } = {},
): Promise<Database> {
  const { clock = fakeClock(), file } = options
  if (file === undefined) return onPostgres ? pooledDatabase(clock) : pooledSqlite(clock)
  const database = await openDatabase(tempSqlite(file), clock)
  onTestFinished(() => database.close().catch(() => {}))
  return database
}

/** Opens a PostgreSQL database with the time limits of tests. */
export const openServer = (url: string, clock: Clock = systemClock): Promise<Database> =>
  openDatabase(url, clock, { timings: FAST_TIMINGS.pool })

/** Open PostgreSQL databases that no test uses. */
const idleDatabases: Database[] = []

/**
 * Returns a PostgreSQL database with reused connections: opening them takes longer than most tests.
 */
async function pooledDatabase(clock: Clock): Promise<Database> {
  const database = idleDatabases.pop() ?? (await openServer(await createPostgres()))
  onTestFinished(async () => {
    const ask: Ask = async statement =>
      (await sql.raw<UsedTable>(statement).execute(database.db)).rows
    if (await empty(ask)) idleDatabases.push(database)
    else await database.close()
  })
  const steadyClock = new SteadyClock(clock, 'postgres')
  return { ...database, clock, steadyClock, close: async () => {} }
}

type Ask = (statement: string) => Promise<readonly UsedTable[]>
type UsedTable = { readonly name: string; readonly is_analyzed: boolean }

/**
 * Deletes all rows. Returns false if a table has statistics, which would affect the planner in the
 * next test. Only tables with rows are truncated: all of them take ten times as long.
 */
async function empty(ask: Ask): Promise<boolean> {
  const used = await ask(USED_TABLES)
  if (used.some(({ is_analyzed }) => is_analyzed)) return false
  if (used.length > 0) await ask(`truncate ${used.map(({ name }) => `"${name}"`).join(', ')}`)
  return true
}

/** Finds the tables that had rows since they were truncated, and those with statistics. */
const USED_TABLES = `
  select relname as name, is_analyzed
  from pg_class, lateral (select exists (
    select 1 from pg_statistic where starelid = pg_class.oid) as is_analyzed) as statistics
  where relnamespace = 'public'::regnamespace
    and relname in (${TABLES.map(name => `'${name}'`).join(', ')})
    and (is_analyzed or pg_relation_size(oid) > 0)`

/**
 * Returns the URL of a SQLite database: a new file in an existing folder is a copy of the template.
 */
export function tempSqlite(file: string): string {
  if (!existsSync(file) && existsSync(dirname(file))) copyFileSync(inject('sqliteTemplate'), file)
  return `sqlite:${file}`
}

/**
 * Databases of this file that no test uses: emptying one takes a tenth of the time of creating one.
 */
const idle: string[] = []

/** Returns the URL of an empty PostgreSQL database with tables, for this test alone. */
export async function tempPostgres(): Promise<string> {
  const url = idle.pop() ?? (await createPostgres())
  onTestFinished(async () => {
    const client = new pg.Client(url)
    await client.connect()
    const ask: Ask = async statement => (await client.query<UsedTable>(statement)).rows
    const isEmpty = await empty(ask).finally(() => client.end())
    if (isEmpty) idle.push(url)
  })
  return url
}

/** Creates a database without tables and returns its URL; `options` as in CREATE DATABASE. */
export async function emptyDatabase(options = ''): Promise<string> {
  const server = inject('postgres')
  const name = `ev_empty_${randomUUID().replaceAll('-', '')}`
  await ask(`${server}postgres`, `create database ${name} ${options}`)
  onTestFinished(async () => {
    await ask(`${server}postgres`, `drop database ${name} with (force)`)
  })
  return `${server}${name}`
}

/** The same in LATIN1, which has 256 characters. */
export const latin1Database = () =>
  emptyDatabase("encoding 'LATIN1' template template0 lc_collate 'C' lc_ctype 'C'")

/** Creates a database with tables, which is not deleted, and returns its URL. */
export async function createPostgres(): Promise<string> {
  const server = inject('postgres')
  const name = `ev_${randomUUID().replaceAll('-', '')}`
  await ask(`${server}postgres`, `create database ${name} template ${TEMPLATE}`)
  return `${server}${name}`
}

export type Bench = { database: Database; clock: FakeClock; job: Job }

/** Creates a queued job with these texts; each text is its own dedupe key. */
export async function queuedJob(texts: readonly string[], jobId = 'job_a'): Promise<Bench> {
  const clock = fakeClock()
  const database = await tempDatabase({ clock })
  return { database, clock, job: await addJob(database, texts, jobId) }
}

export async function addJob(
  database: Database,
  texts: readonly string[],
  jobId: string,
): Promise<Job> {
  await createJob(database, { id: jobId, sourceKey: `source of ${jobId}`, source: '{}' })
  const items = texts.map((text, n) => ({ position: n + 1, text, dedupeKey: text }))
  await addItems(database, jobId, items)
  return queueJob(database, jobId)
}

/** Routes all queued items of a job: the operator is `op` unless `place` returns another. */
export async function fileAll(
  database: Database,
  jobId: string,
  place: (text: string) => { operator: string; domain: string } = text => ({
    operator: 'op',
    domain: text.split('@')[1] ?? '',
  }),
): Promise<void> {
  const items = await queuedItems(database, { jobId, after: 0, max: 10_000 })
  const routed = items.map(({ position, text }) => ({ position, route: '{}', ...place(text) }))
  await write(database, trx => storeRoutes(trx, { jobId, routed, now: database.clock.now() }))
  await startJob(database, jobId)
}
