import { type Kysely, sql } from 'kysely'
import { type Database, writeConcurrent } from '../db/database.ts'
import type { Schema } from '../db/schema.ts'
import { inArray, locking } from '../db/sql-dialect.ts'
import type { JobTable, JobType } from './tables.ts'

export type Job = JobTable

export type NewJob = {
  readonly id: string
  readonly sourceKey: string
  readonly source: string
  /** Left out: a list of the command line. */
  readonly owner?: {
    readonly accountId: string
    readonly keyId: string
    readonly type: Exclude<JobType, 'list'>
    readonly name: string | null
    readonly sandbox: boolean
  }
}

/** Begins a job; its items follow by `addItems`, and `queueJob` ends the loading. */
export async function createJob(database: Database, job: NewJob): Promise<void> {
  const row = newRow(job, database.clock.now())
  await writeConcurrent(database, trx => trx.insertInto('job').values(row).execute())
}

/** A job as it is before it has items. */
export function newRow({ id, sourceKey, source, owner }: NewJob, now: number): Job {
  return {
    id,
    state: 'loading',
    source_key: sourceKey,
    source,
    account_id: owner?.accountId ?? null,
    key_id: owner?.keyId ?? null,
    type: owner?.type ?? 'list',
    name: owner?.name ?? null,
    sandbox: owner?.sandbox ? 1 : 0,
    ...{ total: 0, done: 0, duplicates: 0, malformed: 0, failed: 0 },
    ...{ deliverable: 0, risky: 0, undeliverable: 0, unknown: 0 },
    ...{ held: 0, credit_period: null, error: null },
    ...{ created_at: now, started_at: null, finished_at: null, written_at: null },
  }
}

/** Notes anew what finishing a job needs: the newest command counts. */
export async function setSource(database: Database, jobId: string, source: string): Promise<void> {
  await writeConcurrent(database, trx =>
    trx.updateTable('job').set({ source }).where('id', '=', jobId).execute(),
  )
}

/** The latest job made from this source whose output is not written yet. */
export async function unfinishedJob({ db }: Database, sourceKey: string): Promise<Job | null> {
  const job = await db
    .selectFrom('job')
    .selectAll()
    .where('source_key', '=', sourceKey)
    .where('written_at', 'is', null)
    .where('state', 'in', ['loading', 'queued', 'processing', 'completed'])
    .orderBy('created_at', 'desc')
    .executeTakeFirst()
  return job ?? null
}

/** The job of that id, if there is one. */
export async function findJob({ db }: Pick<Database, 'db'>, jobId: string): Promise<Job | null> {
  return (await db.selectFrom('job').selectAll().where('id', '=', jobId).executeTakeFirst()) ?? null
}

export async function readJob({ db }: Database, jobId: string): Promise<Job> {
  return jobIn(db, jobId)
}

/** Notes that the output of a job is written whole. */
export async function markWritten(database: Database, jobId: string): Promise<void> {
  const written_at = database.clock.now()
  await writeConcurrent(database, trx =>
    trx.updateTable('job').set({ written_at }).where('id', '=', jobId).execute(),
  )
}

/** The same; in a transaction nobody else changes it until that ends. */
export function jobIn(db: Kysely<Schema>, jobId: string): Promise<Job> {
  return rowOf(db, jobId).executeTakeFirstOrThrow()
}

/**
 * The job, while it may still take results; null when it was cancelled or deleted, or is finished. In a transaction
 * nobody else changes it until that ends: whoever locks several takes them in the order of their IDs, and what belongs
 * to them after that.
 */
export async function openJobIn(trx: Kysely<Schema>, jobId: string): Promise<Job | null> {
  const job = await lockedJob(trx, jobId)
  if (job === null || job.finished_at !== null) return null
  // One that is being removed has items no more that results could belong to.
  return job.state === 'loading' ? null : job
}

/** The same of any job; null where there is none. */
export async function lockedJob(trx: Kysely<Schema>, jobId: string): Promise<Job | null> {
  return (await rowOf(trx, jobId).executeTakeFirst()) ?? null
}

const rowOf = (db: Kysely<Schema>, jobId: string) =>
  locking(db, db.selectFrom('job').selectAll().where('id', '=', jobId))

/** Per cent. 100 is kept for `completed`: who polls for it must find everything there. */
export function progressOf({ state, done, total }: Job): number {
  if (state === 'completed') return 100
  return total === 0 ? 0 : Math.min(99, Math.floor((100 * done) / total))
}

/** How the addresses of a job are asked; kept in its `source`, so that it holds after a restart and a resume too. */
export type JobOptions = {
  /** False: everything but the mail server. */
  readonly checkSmtp: boolean
  /** True: the mail server is asked even if its answer is remembered. */
  readonly forceRefresh: boolean
}

export const DEFAULT_JOB_OPTIONS: JobOptions = { checkSmtp: true, forceRefresh: false }

/** The part of a job's `source` that says it; what is usual is left out. */
export const toSourceFields = ({ checkSmtp, forceRefresh }: JobOptions) => ({
  ...(checkSmtp ? {} : { check_smtp: false }),
  ...(forceRefresh ? { force_refresh: true } : {}),
})

/** What the `source` of a job says. */
export function parseJobOptions({ source }: Pick<Job, 'source'>): JobOptions {
  const said = JSON.parse(source) as { check_smtp?: boolean; force_refresh?: boolean }
  return { checkSmtp: said.check_smtp !== false, forceRefresh: said.force_refresh === true }
}

/** Those of these jobs of accounts that are to be worked on. */
export function openJobsAmong({ reader }: Database, ids: readonly string[]): Promise<Job[]> {
  return reader
    .selectFrom('job')
    .selectAll()
    .where(sql<boolean>`id in ${inArray(reader, ids)}`)
    .where('account_id', 'is not', null)
    .where('state', 'in', ['queued', 'processing'])
    .execute()
}

/** Those of these jobs that are there, as they stand. */
export function jobsAmong({ reader }: Database, ids: readonly string[]): Promise<Job[]> {
  return reader
    .selectFrom('job')
    .selectAll()
    .where(sql<boolean>`id in ${inArray(reader, ids)}`)
    .execute()
}

/** Takes a job of an account up where others may work on it already: what they ask about stays theirs. Null: it is over. */
export function beginJob(database: Database, jobId: string): Promise<Job | null> {
  return writeConcurrent(database, async trx => {
    await trx
      .updateTable('job')
      .set({ state: 'processing', started_at: database.clock.now() })
      .where('id', '=', jobId)
      .where('state', '=', 'queued')
      .where('account_id', 'is not', null)
      .execute()
    const job = await openJobIn(trx, jobId)
    return job?.account_id == null ? null : job
  })
}
