import type { Config } from '../../config/settings.ts'
import type { Database } from '../../db/database.ts'
import { isLocked, jobLock } from '../../db/file-lock.ts'
import { findJobs } from '../../jobs/job-list.ts'
import { getListName, type Job } from '../../jobs/job-store.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { BulkSource } from '../bulk/list-source.ts'
import type { CliContext } from '../context.ts'
import { closeAll, isServed, openAll } from '../database.ts'
import { isOfService, type JobStatus, parseJobPrefix, selectJob } from '../remote/jobs.ts'
import { stdinCopyName } from './stdin-copy.ts'

export function jobStatus(job: Job, { file, dataDir, isServed }: JobContext): JobStatus {
  if (job.state === 'cancelled' || job.state === 'failed') return job.state
  if (isOfService(job)) return job.state === 'completed' || isServed ? job.state : 'stopped'
  if (job.written_at !== null) return 'completed'
  const hasLock = isLocked(...jobLock(file, dataDir, job.source_key))
  if (job.state === 'completed') return hasLock ? 'writing' : 'unwritten'
  return hasLock ? job.state : 'stopped'
}

type JobContext = Pick<Database, 'file'> & {
  readonly dataDir: string
  /** Whether a service is running on the database of the job. */
  readonly isServed: boolean
}

/** Reads what `jobStatus` needs besides the job. */
export const jobContext = async (
  database: Database,
  { dataDir }: Pick<Config, 'dataDir'>,
): Promise<JobContext> => ({
  file: database.file,
  dataDir,
  isServed: await isServed(database, { dataDir }),
})

/** Returns the list and the output of a job; for a job of the service, its name or type. */
export function listAndOutput(job: Job): { list: string; output: string | null } {
  if (isOfService(job)) return { list: sanitizeText(getListName(job) ?? job.type), output: null }
  const { path, name, output } = JSON.parse(job.source) as Partial<BulkSource>
  const copied = sanitizeText(name ?? 'stdin')
  return {
    list: path === undefined ? '?' : stdinCopyName(job) !== null ? copied : sanitizeText(path),
    output: output === undefined ? null : output === '-' ? 'stdout' : sanitizeText(output),
  }
}

/** Calls `work` with the job that has this ID, or a unique prefix of it, and its database. */
export async function withJob<T>(
  context: CliContext,
  config: Config,
  id: string,
  work: (database: Database, job: Job) => Promise<T>,
): Promise<T> {
  const databases = await openAll(context, config)
  try {
    const { database, job } = await findByPrefix(databases, id)
    return await work(database, job)
  } finally {
    await closeAll(databases)
  }
}

/**
 * Whether a job is managed in that database. With PostgreSQL, the local file holds only jobs of
 * `ev bulk` and the server all others; after a migration, copies of a job may exist in both.
 */
export const belongsTo = (databases: readonly Database[], { dialect }: Database, job: Job) =>
  databases.length === 1 && dialect === 'sqlite'
    ? true
    : isOfService(job) === (dialect === 'postgres')

type Found = { readonly database: Database; readonly job: Job }

async function findByPrefix(databases: readonly Database[], idOrPrefix: string): Promise<Found> {
  const prefix = parseJobPrefix(idOrPrefix)
  const found = await findAll(databases, prefix)
  return selectJob(found, idOrPrefix, prefix, ({ job }) => job.id)
}

async function findAll(databases: readonly Database[], prefix: string): Promise<Found[]> {
  const found = databases.map(async database =>
    (await findJobs(database, prefix))
      .filter(job => belongsTo(databases, database, job))
      .map(job => ({ database, job })),
  )
  return (await Promise.all(found)).flat()
}
