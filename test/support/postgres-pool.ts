import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import { inject, onTestFinished } from 'vitest'
import { type Database, openDatabase } from '../../src/db/database.ts'
import { TABLES } from '../../src/db/schema.ts'
import { readClock, SteadyClock } from '../../src/db/steady-clock.ts'
import { type Clock, systemClock } from '../../src/platform/clock.ts'
import { FAST_TIMINGS } from './fast-timings.ts'
import { ask } from './postgres-server.ts'
import { TEMPLATE } from './postgres-setup.ts'

/** A PostgreSQL database with tables, and those of its open pools that no test uses. */
type OpenServer = { readonly url: string; readonly pools: Database[] }

/** Databases that no test uses: emptying one takes a tenth of the time of creating one. */
const idle: OpenServer[] = []
/** The idle pools of the databases that tests use, by URL. */
const idlePools = new Map<string, Database[]>()

/** Returns the URL of an empty PostgreSQL database with tables, for this test alone. */
export async function tempPostgres(): Promise<string> {
  const { url, pools } = idle.pop() ?? { url: await createPostgres(), pools: [] }
  idlePools.set(url, pools)
  onTestFinished(async () => {
    idlePools.delete(url)
    const pool = pools[0] ?? (await openPools(url))
    if (pools.length === 0) pools.push(pool)
    if (await empty(pool)) idle.push({ url, pools })
    else for (const pool of pools) await pool.close()
  })
  return url
}

/**
 * Opens a PostgreSQL database with the time limits of tests. For the URL of `tempPostgres`, the
 * connections are those of an earlier test: the server needs 30 ms of CPU time for each new one.
 */
export async function openServer(url: string, clock: Clock = systemClock): Promise<Database> {
  const pools = idlePools.get(url)
  if (pools === undefined) return openPools(url, clock)
  const open = pools.pop() ?? (await openPools(url))
  const steadyClock = new SteadyClock(clock, 'postgres')
  const database = { ...open, clock, steadyClock }
  steadyClock.continueFrom(await readClock(database))
  let isOpen = true
  const close = async () => {
    if (isOpen) pools.push(open)
    isOpen = false
  }
  return { ...database, close }
}

/** The same for a test with a fake clock, at which the steady clock starts too. */
export async function pooledPostgres(clock: Clock): Promise<Database> {
  const open = await openServer(await tempPostgres(), clock)
  onTestFinished(open.close)
  return { ...open, steadyClock: new SteadyClock(clock, 'postgres'), close: async () => {} }
}

const openPools = (url: string, clock: Clock = systemClock): Promise<Database> =>
  openDatabase(url, clock, { timings: FAST_TIMINGS.pool })

/** Creates a database with tables, which is not deleted, and returns its URL. */
export async function createPostgres(): Promise<string> {
  const server = inject('postgres')
  const name = `ev_${randomUUID().replaceAll('-', '')}`
  await ask(`${server}postgres`, `create database ${name} template ${TEMPLATE}`)
  return `${server}${name}`
}

type UsedTable = { readonly name: string; readonly is_analyzed: boolean }

/**
 * Deletes all rows. Returns false if a table has statistics, which would affect the planner in the
 * next test. Only tables with rows are truncated: all of them take ten times as long.
 */
async function empty({ db }: Database): Promise<boolean> {
  const { rows: used } = await sql.raw<UsedTable>(USED_TABLES).execute(db)
  if (used.some(({ is_analyzed }) => is_analyzed)) return false
  const names = used.map(({ name }) => sql.table(name))
  if (names.length > 0) await sql`truncate ${sql.join(names)}`.execute(db)
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
