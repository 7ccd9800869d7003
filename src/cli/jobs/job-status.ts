import type { Config } from '../../config/settings.ts'
import type { Database } from '../../db/database.ts'
import { isLocked, jobLockName } from '../../db/file-lock.ts'
import { findJobs } from '../../jobs/job-list.ts'
import type { Job } from '../../jobs/job-store.ts'
import { EvError } from '../../platform/error.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { BulkSource } from '../bulk/list-source.ts'
import type { CliContext } from '../context.ts'
import { closeAll, openAll } from '../database.ts'
import { isServed } from '../serve/active-members.ts'
import { stdinCopyOf } from './stdin-copy.ts'

/**
 * How a job stands for people. The store alone cannot say: a process that was killed leaves its job
 * `processing`, so a job that is not finished is `stopped` when no process holds its lock. `writing` and
 * `unwritten`: all is known, and the output is being written, or was not written whole.
 */
export type JobStatus =
  | 'loading'
  | 'queued'
  | 'processing'
  | 'writing'
  | 'stopped'
  | 'unwritten'
  | 'completed'
  | 'cancelled'
  | 'failed'

export function jobStatus(job: Job, { dataDir, isServed }: JobContext): JobStatus {
  if (job.state === 'cancelled' || job.state === 'failed') return job.state
  if (isOfService(job)) return job.state === 'completed' || isServed ? job.state : 'stopped'
  if (job.written_at !== null) return 'completed'
  const isAtWork = isLocked(dataDir, jobLockName(job.source_key))
  if (job.state === 'completed') return isAtWork ? 'writing' : 'unwritten'
  return isAtWork ? job.state : 'stopped'
}

export type JobContext = {
  readonly dataDir: string
  /** Whether a service is at work on the database that has the job. */
  readonly isServed: boolean
}

/** Looks at what surrounds the jobs of a database. */
export const jobContext = async (
  database: Database,
  { dataDir }: Pick<Config, 'dataDir'>,
): Promise<JobContext> => ({ dataDir, isServed: await isServed(database, { dataDir }) })

/** Whether it was submitted to `ev serve`, which alone works on it. */
export const isOfService = ({ account_id }: Pick<Job, 'account_id'>) => account_id !== null

/** Whether a process may be at work on it. */
export const isAtWork = (status: JobStatus) =>
  ['loading', 'queued', 'processing', 'writing'].includes(status)

/** The list that a job was made from, and where its results go; of a job of the service its name, or its kind. */
export function databasesOf(job: Job): { list: string; output: string | null } {
  if (isOfService(job)) return { list: sanitizeText(job.name ?? job.type), output: null }
  const { path, output } = JSON.parse(job.source) as Partial<BulkSource>
  return {
    list: path === undefined ? '?' : stdinCopyOf(job) !== null ? 'stdin' : sanitizeText(path),
    output: output === undefined ? null : output === '-' ? 'stdout' : sanitizeText(output),
  }
}

/** Runs `work` on the database and the one job that an ID, or the beginning of one, names. */
export async function withJob<T>(
  context: CliContext,
  config: Config,
  id: string,
  work: (database: Database, job: Job) => Promise<T>,
): Promise<T> {
  const databases = await openAll(context, config)
  try {
    const { database, job } = await theJob(databases, id)
    return await work(database, job)
  } finally {
    await closeAll(databases)
  }
}

/**
 * Whether a job is looked for in that database. Beside a server the file has the lists of the command line alone, and
 * the server all others, also where one was made of the other.
 */
export const belongsTo = (databases: readonly Database[], { dialect }: Database, job: Job) =>
  databases.length === 1 && dialect === 'sqlite'
    ? true
    : isOfService(job) === (dialect === 'postgres')

/** Fewer characters would name the wrong job by a slip of the finger. */
const PREFIX_MIN = 4

type Found = { readonly database: Database; readonly job: Job }

async function theJob(databases: readonly Database[], given: string): Promise<Found> {
  const prefix = /^(job|ver)_/.test(given) ? given : `job_${given}`
  if (prefix.length < 'job_'.length + PREFIX_MIN) {
    throw new EvError(
      'usage',
      `“${sanitizeText(given)}” is too short to name a job: give at least ${PREFIX_MIN} characters after “job_”.`,
    )
  }
  const [found, another] = await findAll(databases, prefix)
  if (found === undefined) throw unknownJob(given)
  if (another === undefined || found.job.id === prefix) return found
  throw new EvError(
    'usage',
    `“${sanitizeText(given)}” may be ${found.job.id} or ${another.job.id}. Give more of the ID.`,
  )
}

async function findAll(databases: readonly Database[], prefix: string): Promise<Found[]> {
  const found = databases.map(async database =>
    (await findJobs(database, prefix))
      .filter(job => belongsTo(databases, database, job))
      .map(job => ({ database, job })),
  )
  return (await Promise.all(found)).flat()
}

const unknownJob = (given: string) =>
  new EvError(
    'no_input',
    `There is no job ${sanitizeText(given)}. “ev jobs” lists those there are.`,
  )
