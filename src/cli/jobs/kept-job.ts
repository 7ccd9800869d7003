import { EvError } from '../../base/error.ts'
import { cleanText } from '../../base/text.ts'
import type { Config } from '../../config/settings.ts'
import type { Database } from '../../store/database.ts'
import { findJobs } from '../../store/job/job-list.ts'
import type { Job } from '../../store/job/jobs.ts'
import { isLocked, listLock, SERVE_LOCK } from '../../store/lock.ts'
import type { BulkSource } from '../bulk/list/source.ts'
import { openKept } from '../database.ts'
import { stdinCopyOf } from './stdin-copy.ts'

/**
 * How a job stands for people. The store alone cannot say: a process that was killed leaves its job
 * `processing`, so a job that is not finished is `stopped` when no process holds its lock. `writing` and
 * `unwritten`: all is known, and the output is being written, or was not written whole.
 */
export type Standing =
  | 'loading'
  | 'queued'
  | 'processing'
  | 'writing'
  | 'stopped'
  | 'unwritten'
  | 'completed'
  | 'cancelled'
  | 'failed'

export function standingOf(job: Job, { dataDir }: Pick<Config, 'dataDir'>): Standing {
  if (job.state === 'cancelled' || job.state === 'failed') return job.state
  if (isOfService(job)) return standingInService(job, dataDir)
  if (job.written_at !== null) return 'completed'
  const isAtWork = isLocked(dataDir, listLock(job.source_key))
  if (job.state === 'completed') return isAtWork ? 'writing' : 'unwritten'
  return isAtWork ? job.state : 'stopped'
}

/** Whether it was submitted to `ev serve`, which alone works on it. */
export const isOfService = ({ account_id }: Pick<Job, 'account_id'>) => account_id !== null

function standingInService({ state }: Job, dataDir: string): Standing {
  return state === 'completed' || isLocked(dataDir, SERVE_LOCK) ? state : 'stopped'
}

/** Whether a process may be at work on it. */
export const isAtWork = (standing: Standing) =>
  ['loading', 'queued', 'processing', 'writing'].includes(standing)

/** The list that a job was made from, and where its results go; of a job of the service its name, or its kind. */
export function placesOf(job: Job): { list: string; output: string | null } {
  if (isOfService(job)) return { list: cleanText(job.name ?? job.type), output: null }
  const { path, output } = JSON.parse(job.source) as Partial<BulkSource>
  return {
    list: path === undefined ? '?' : stdinCopyOf(job) !== null ? 'stdin' : cleanText(path),
    output: output === undefined ? null : output === '-' ? 'stdout' : cleanText(output),
  }
}

/** Runs `work` on the database and the one job that an ID, or the beginning of one, names. */
export async function withJob<T>(
  config: Config,
  id: string,
  work: (database: Database, job: Job) => Promise<T>,
): Promise<T> {
  const database = await openKept(config)
  if (database === null) throw unknownJob(id)
  try {
    return await work(database, await theJob(database, id))
  } finally {
    await database.close()
  }
}

/** Fewer characters would name the wrong job by a slip of the finger. */
const PREFIX_MIN = 4

async function theJob(database: Database, given: string): Promise<Job> {
  const prefix = /^(job|ver)_/.test(given) ? given : `job_${given}`
  if (prefix.length < 'job_'.length + PREFIX_MIN) {
    throw new EvError(
      'usage',
      `“${cleanText(given)}” is too short to name a job: give at least ${PREFIX_MIN} characters after “job_”.`,
    )
  }
  const [job, another] = await findJobs(database, prefix)
  if (job === undefined) throw unknownJob(given)
  if (another === undefined || job.id === prefix) return job
  throw new EvError(
    'usage',
    `“${cleanText(given)}” may be ${job.id} or ${another.id}. Give more of the ID.`,
  )
}

const unknownJob = (given: string) =>
  new EvError('no_input', `There is no job ${cleanText(given)}. “ev jobs” lists those there are.`)
