import { randomUUID } from 'node:crypto'
import { copyFileSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { inject, onTestFinished } from 'vitest'
import { type Database, openDatabase, write } from '../../src/db/database.ts'
import { addItems } from '../../src/jobs/import/item-import.ts'
import { queuedItems, storeRoutes } from '../../src/jobs/item-store.ts'
import { startJob } from '../../src/jobs/job-state.ts'
import { createJob, type Job } from '../../src/jobs/job-store.ts'
import type { Clock } from '../../src/platform/clock.ts'
import { type FakeClock, fakeClock } from './clock.ts'
import { pooledPostgres } from './postgres-pool.ts'
import { ask } from './postgres-server.ts'
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
  if (file === undefined) return onPostgres ? pooledPostgres(clock) : pooledSqlite(clock)
  const database = await openDatabase(tempSqlite(file), clock)
  onTestFinished(() => database.close().catch(() => {}))
  return database
}

/**
 * Returns the URL of a SQLite database: a new file in an existing folder is a copy of the template.
 */
export function tempSqlite(file: string): string {
  if (!existsSync(file) && existsSync(dirname(file))) copyFileSync(inject('sqliteTemplate'), file)
  return `sqlite:${file}`
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
