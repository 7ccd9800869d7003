import { rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { EvError } from '../../base/error.ts'
import type { Config } from '../../config/settings.ts'
import type { Database } from '../../store/database.ts'
import { listJobs } from '../../store/job-list.ts'
import { cancelJob, deleteJob, type Job } from '../../store/jobs.ts'
import { listLock, lockJob } from '../../store/lock.ts'
import { readConfig } from '../settings.ts'
import { isAtWork, isStdinCopy, standingOf, withJob } from './kept-job.ts'

export type Flags = { readonly [setting: string]: unknown }

/** `ev jobs resume`: gives the code to exit with. */
export async function resumeCommand(id: string, flags: Flags): Promise<number> {
  const jobId = await withJob(readConfig(flags), id, async (_, job) => {
    refuseFinished(job)
    return job.id
  })
  const { resumeBulk } = await import('../bulk/bulk.ts')
  return resumeBulk(jobId, flags)
}

function refuseFinished({ id, state, written_at }: Job): void {
  if (state === 'cancelled' || state === 'failed') {
    const how = state === 'cancelled' ? 'was cancelled' : 'has failed'
    throw new EvError('usage', `Job ${id} ${how}. “ev bulk” with the same list starts it anew.`)
  }
  if (written_at !== null) {
    throw new EvError('usage', `Job ${id} is finished, and its output is written.`)
  }
}

/** `ev jobs cancel`: gives the code to exit with. */
export function cancelCommand(id: string, flags: Flags): Promise<number> {
  const config = readConfig(flags)
  return withJob(config, id, async (database, job) => {
    const wasAtWork = isAtWork(standingOf(job, config))
    if (!(await cancelJob(database, job.id))) {
      const done = job.state === 'completed' ? 'is finished' : `is ${job.state} already`
      throw new EvError(
        'usage',
        `Job ${job.id} ${done}: there is nothing to cancel. “ev jobs delete ${job.id}” removes it.`,
      )
    }
    process.stdout.write(
      `Cancelled ${job.id}: ${job.done} of ${job.total} rows were done.` +
        `${wasAtWork ? ' The ev that works on it ends within seconds.' : ''}\n`,
    )
    return 0
  })
}

/** `ev jobs delete`: gives the code to exit with. */
export function deleteCommand(id: string, flags: Flags): Promise<number> {
  const config = readConfig(flags)
  return withJob(config, id, async (database, job) => {
    const lock = lockJob(config.dataDir, listLock(job.source_key))
    if (lock === null) {
      throw new EvError(
        'io',
        `An ev is at work on job ${job.id}. Stop it first, or cancel the job: “ev jobs cancel ${job.id}”.`,
      )
    }
    try {
      await deleteJob(database, job.id)
      await forgetStdin(database, config, job)
    } finally {
      lock.release()
    }
    process.stdout.write(`Deleted ${job.id} with its ${job.total} rows.\n`)
    return 0
  })
}

/** The copy of what came from stdin goes too, unless another job is made from the same. */
async function forgetStdin(database: Database, { dataDir }: Config, job: Job): Promise<void> {
  const copy = copyOf(job)
  if (copy === null) return
  const others = await listJobs(database)
  if (others.some(other => other.written_at === null && copyOf(other) === copy)) return
  await rm(join(dataDir, 'stdin', copy), { force: true })
}

/** The name of the copy of stdin that a job was made from. */
export function copyOf({ source }: Job): string | null {
  const { path } = JSON.parse(source) as { path?: string }
  return path !== undefined && isStdinCopy(path) ? basename(path) : null
}
