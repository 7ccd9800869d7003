import { EvError } from '../../base/error.ts'
import { deleteHistoryOf } from '../../store/account/history.ts'
import { compact, type Database, secureDelete } from '../../store/database.ts'
import { cancelJob } from '../../store/job/course.ts'
import { type Job, readJob } from '../../store/job/jobs.ts'
import { deleteJob } from '../../store/job/removal.ts'
import { listLock, lockJob } from '../../store/lock.ts'
import type { CliContext } from '../context.ts'
import { readConfig } from '../settings/settings.ts'
import { isAtWork, isOfService, standingOf, surroundingsOf, withJob } from './kept-job.ts'
import { resumeInService } from './resume-in-service.ts'
import { forgetStdin } from './stdin-copy.ts'

export type Flags = { readonly [setting: string]: unknown }

/** `ev jobs resume`: gives the code to exit with. */
export async function resumeCommand(
  context: CliContext,
  id: string,
  flags: Flags,
): Promise<number> {
  const config = readConfig(context, flags)
  const jobId = await withJob(context, config, id, async (database, job) => {
    if (!isOfService(job)) return job.id
    await resumeInService(context, database, config, job)
    return null
  })
  if (jobId === null) return 0
  const { resumeBulk } = await import('../bulk/bulk.ts')
  return resumeBulk(context, jobId, flags)
}

/** `ev jobs cancel`: gives the code to exit with. */
export function cancelCommand(context: CliContext, id: string, flags: Flags): Promise<number> {
  const config = readConfig(context, flags)
  return withJob(context, config, id, async (database, job) => {
    const wasAtWork = isAtWork(standingOf(job, await surroundingsOf(database, config)))
    if (!(await cancelJob(database, job.id))) {
      const done = job.state === 'completed' ? 'is finished' : `is ${job.state} already`
      throw new EvError(
        'usage',
        `Job ${job.id} ${done}: there is nothing to cancel. “ev jobs delete ${job.id}” removes it.`,
      )
    }
    await forgetStdin(database, config, job)
    context.stdout.write(
      `Cancelled ${job.id}: ${job.done} of ${job.total} rows were done.` +
        `${wasAtWork ? noticedBy(job) : ''}\n`,
    )
    return 0
  })
}

const noticedBy = (job: Job) =>
  isOfService(job)
    ? ' The service asks nothing more for it within seconds.'
    : ' The ev that works on it ends within seconds.'

/** `ev jobs delete`: gives the code to exit with. */
export function deleteCommand(context: CliContext, id: string, flags: Flags): Promise<number> {
  const config = readConfig(context, flags)
  return withJob(context, config, id, async (database, job) => {
    const lock = lockJob(config.dataDir, listLock(job.source_key))
    if (lock === null) {
      throw new EvError(
        'io',
        `An ev is at work on job ${job.id}. Stop it first, or cancel the job: “ev jobs cancel ${job.id}”.`,
      )
    }
    try {
      await secureDelete(database)
      if (isOfService(job)) await forgetHistory(database, job)
      await deleteJob(database, job.id)
      await forgetStdin(database, config, job)
    } finally {
      lock.release()
    }
    await compact(database)
    context.stdout.write(`Deleted ${job.id} with its ${job.total} rows.\n`)
    return 0
  })
}

/** Cancelled first, so that the service adds nothing to the history any more. */
async function forgetHistory(database: Database, { id }: Job): Promise<void> {
  await cancelJob(database, id)
  await deleteHistoryOf(database, await readJob(database, id))
}
