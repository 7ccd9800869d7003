import { type Kysely, sql } from 'kysely'
import { type Database, writeConcurrent } from '../db/database.ts'
import type { Schema } from '../db/schema.ts'
import { inArray, isPostgres, locking } from '../db/sql-dialect.ts'
import type { JobWebhook } from '../webhooks/job-webhook.ts'
import type { JobTable, JobType } from './tables.ts'

export type Job = JobTable

export type NewJob = {
  readonly id: string
  readonly sourceKey: string
  readonly source: string
  /** Left out for a list of the command line. */
  readonly owner?: {
    readonly accountId: string
    readonly keyId: string
    readonly type: Exclude<JobType, 'list'>
    readonly name: string | null
    readonly sandbox: boolean
  }
}

/** Creates a job in state `loading`; `addItems` adds its items, and `queueJob` queues it. */
export async function createJob(database: Database, job: NewJob): Promise<void> {
  const row = newRow(job, database.clock.now())
  await writeConcurrent(database, trx => trx.insertInto('job').values(row).execute())
}

/** Returns the row of a new job without items. */
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
    total: 0,
    done: 0,
    duplicates: 0,
    malformed: 0,
    no_address: 0,
    failed: 0,
    deliverable: 0,
    risky: 0,
    undeliverable: 0,
    unknown: 0,
    held: 0,
    credit_period: null,
    error: null,
    mail_due_at: null,
    finish_requested_at: null,
    number: null,
    created_at: now,
    started_at: null,
    finished_at: null,
    written_at: null,
  }
}

/** Replaces the data needed to finish a job: the latest command applies. */
export async function setSource(database: Database, jobId: string, source: string): Promise<void> {
  await writeConcurrent(database, trx =>
    trx.updateTable('job').set({ source }).where('id', '=', jobId).execute(),
  )
}

/** Returns the latest job of this source whose output is not written yet; null if there is none. */
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

/** Returns the job with this ID; null if there is none. */
export async function findJob({ db }: Pick<Database, 'db'>, jobId: string): Promise<Job | null> {
  return (await db.selectFrom('job').selectAll().where('id', '=', jobId).executeTakeFirst()) ?? null
}

export async function readJob({ db }: Database, jobId: string): Promise<Job> {
  return getLockedJob(db, jobId)
}

/** Returns the sources of all jobs whose output is written. */
export async function listWrittenSources({ db }: Database): Promise<string[]> {
  const jobs = await db
    .selectFrom('job')
    .select('source')
    .where('written_at', 'is not', null)
    .execute()
  return jobs.map(({ source }) => source)
}

/** Marks the output of a job as completely written. */
export async function markWritten(database: Database, jobId: string): Promise<void> {
  const written_at = database.clock.now()
  await writeConcurrent(database, trx =>
    trx.updateTable('job').set({ written_at }).where('id', '=', jobId).execute(),
  )
}

/**
 * Returns the job with this ID, and throws if there is none. In a transaction, the row is locked
 * until the transaction ends.
 */
export function getLockedJob(db: Kysely<Schema>, jobId: string): Promise<Job> {
  return selectJob(db, jobId).executeTakeFirstOrThrow()
}

/**
 * Returns the job if it still accepts results; null if it was cancelled or deleted or is finished.
 * In a transaction, the row is locked until the transaction ends: lock several jobs in the order of
 * their IDs, and rows that belong to them afterwards.
 */
export async function getLockedOpenJob(trx: Kysely<Schema>, jobId: string): Promise<Job | null> {
  const job = await findLockedJob(trx, jobId)
  return job !== null && acceptsResults(job) ? job : null
}

/** As `getLockedOpenJob` for several jobs, in one statement on PostgreSQL. */
export async function getLockedOpenJobs(
  trx: Kysely<Schema>,
  ids: readonly string[],
): Promise<Job[]> {
  if (isPostgres(trx)) {
    const query = locking(trx, trx.selectFrom('job').selectAll())
    const found = query.where(sql<boolean>`id in ${inArray(trx, ids)}`).orderBy('id')
    return (await found.execute()).filter(acceptsResults)
  }
  const jobs: Job[] = []
  for (const id of ids) {
    const job = await getLockedOpenJob(trx, id)
    if (job !== null) jobs.push(job)
  }
  return jobs
}

/** A job that is being deleted, `loading`, has no more items to which results could belong. */
const acceptsResults = ({ finished_at, state }: Job) => finished_at === null && state !== 'loading'

/** Returns and locks a job in any state; null if there is none. */
export async function findLockedJob(trx: Kysely<Schema>, jobId: string): Promise<Job | null> {
  return (await selectJob(trx, jobId).executeTakeFirst()) ?? null
}

const selectJob = (db: Kysely<Schema>, jobId: string) =>
  locking(db, db.selectFrom('job').selectAll().where('id', '=', jobId))

/**
 * Returns the progress in percent. 100 is reserved for `completed`: a client that polls for it must
 * find all results.
 */
export function getProgress({ state, done, total }: Job): number {
  if (state === 'completed') return 100
  return total === 0 ? 0 : Math.min(99, Math.floor((100 * done) / total))
}

/**
 * How the addresses of a job are verified. Stored in its `source`, so that restarts and resumes use
 * the same options.
 */
export type JobOptions = {
  /** False to check everything except the mail server. */
  readonly checkSmtp: boolean
  /** True to probe the mail server even if its answer is cached. */
  readonly forceRefresh: boolean
}

export const DEFAULT_JOB_OPTIONS: JobOptions = { checkSmtp: true, forceRefresh: false }

/** Key-value pairs that its submitter attached to a job. */
export type Metadata = Readonly<Record<string, string>>

/** The options of a submission. */
export type SubmitOptions = JobOptions & {
  readonly metadata?: Metadata
  /** The endpoint of the job; null or left out if it has none. */
  readonly webhook?: JobWebhook | null
  /** Whether its end is reported by mail. */
  readonly notify?: boolean
  /** The job that this one verifies again; null or left out for a new list. */
  readonly previousJobId?: string | null
  /** The schedule that creates the job; null or left out if there is none. */
  readonly scheduleId?: string | null
}

/** Returns the fields of a job's `source` for these options; defaults are left out. */
export const toSourceFields = ({
  checkSmtp,
  forceRefresh,
  metadata = {},
  webhook = null,
  notify = false,
  previousJobId = null,
  scheduleId = null,
}: SubmitOptions) => ({
  ...(checkSmtp ? {} : { check_smtp: false }),
  ...(forceRefresh ? { force_refresh: true } : {}),
  ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
  ...(webhook === null ? {} : { webhook_id: webhook.id }),
  ...(notify ? { notify: true } : {}),
  ...(previousJobId === null ? {} : { previous_job_id: previousJobId }),
  ...(scheduleId === null ? {} : { schedule_id: scheduleId }),
})

/** Returns the name of a list; null if it has none. Older versions stored that of a file in `source`. */
export const getListName = ({ name, source }: Pick<Job, 'name' | 'source'>): string | null =>
  name ?? (JSON.parse(source) as { file_name?: string }).file_name ?? null

type JobFields = {
  readonly metadata: Metadata
  /** ID of the job's own webhook; null if it has none. */
  readonly webhookId: string | null
  /** The job that it verifies again; null for a new list. */
  readonly previousJobId: string | null
  /** The schedule that created it; null if none did. */
  readonly scheduleId: string | null
}

/**
 * Reads the fields of a job that are stored in its `source`. It also has the header of a file, so
 * its JSON may have 100 KB: use this function instead of several of those below.
 */
export function parseJobFields({ source }: Pick<Job, 'source'>): JobFields {
  const fields = JSON.parse(source) as {
    metadata?: Metadata
    webhook_id?: string
    previous_job_id?: string
    schedule_id?: string
  }
  return {
    metadata: fields.metadata ?? {},
    webhookId: fields.webhook_id ?? null,
    previousJobId: fields.previous_job_id ?? null,
    scheduleId: fields.schedule_id ?? null,
  }
}

export const parseMetadata = (job: Pick<Job, 'source'>): Metadata => parseJobFields(job).metadata

/** Reads the ID of the job's own webhook from its `source`; null if it has none. */
export const parseWebhookId = (job: Pick<Job, 'source'>): string | null =>
  parseJobFields(job).webhookId

/** Reads from the `source` of a job which job it verifies again, and which schedule created it. */
export function parseOrigin(
  job: Pick<Job, 'source'>,
): Pick<JobFields, 'previousJobId' | 'scheduleId'> {
  const { previousJobId, scheduleId } = parseJobFields(job)
  return { previousJobId, scheduleId }
}

/** Reads the options from the `source` of a job. */
export function parseJobOptions({ source }: Pick<Job, 'source'>): JobOptions {
  const fields = JSON.parse(source) as { check_smtp?: boolean; force_refresh?: boolean }
  return { checkSmtp: fields.check_smtp !== false, forceRefresh: fields.force_refresh === true }
}

/** Whether the end of a job is reported by mail. */
export const parseNotify = ({ source }: Pick<Job, 'source'>): boolean =>
  (JSON.parse(source) as { notify?: boolean }).notify === true

/** Lists those of these jobs that exist. */
export function findJobsByIds({ reader }: Database, ids: readonly string[]): Promise<Job[]> {
  return reader
    .selectFrom('job')
    .selectAll()
    .where(sql<boolean>`id in ${inArray(reader, ids)}`)
    .execute()
}

/**
 * Starts a job of an account that other members may already work on; their claims stay. Returns
 * null if the job has ended.
 */
export function startSharedJob(database: Database, jobId: string): Promise<Job | null> {
  return writeConcurrent(database, async trx => {
    await trx
      .updateTable('job')
      .set({ state: 'processing', started_at: database.clock.now() })
      .where('id', '=', jobId)
      .where('state', '=', 'queued')
      .where('account_id', 'is not', null)
      .execute()
    const job = await getLockedOpenJob(trx, jobId)
    return job?.account_id == null ? null : job
  })
}
