import { type Plan, planNamed, plansWith } from '../../account/plan.ts'
import { EvError } from '../../base/error.ts'
import type { Config } from '../../config/settings.ts'
import { accountIn } from '../../store/account/accounts.ts'
import { type Database, write } from '../../store/database.ts'
import type { Job } from '../../store/job/jobs.ts'
import { creditsToResume, isResumable, type Resumed, resumeJob } from '../../work/resume.ts'
import type { CliContext } from '../context.ts'
import { isAtWork, standingOf, surroundingsOf } from './kept-job.ts'

/** Opens a job of the service that was cancelled or failed; a service that runs notices within seconds. */
export async function resumeInService(
  context: CliContext,
  database: Database,
  config: Config,
  job: Job,
): Promise<void> {
  if (!isResumable(job)) throw notResumable(job)
  const account = await accountIn(database.db, job.account_id ?? '')
  const plan = planNamed(plansWith(config.plans), account?.plan ?? '')
  const { creditsPerDay } = plan
  const needed = await creditsToResume(database, job, creditsPerDay)
  const o = { now: database.clock.now(), needed, creditsPerDay }
  const resumed = jobOf(await write(database, trx => resumeJob(trx, job, o)), job, plan, needed)
  const runs = isAtWork(standingOf(resumed, await surroundingsOf(database, config)))
  context.stdout.write(
    `Resumed ${job.id}: ${job.done} of ${job.total} rows were done. ` +
      `${runs ? 'The service goes on with it within seconds.' : 'The next “ev serve” goes on with it.'}\n`,
  )
}

function notResumable({ id, state }: Job): EvError {
  const sentence =
    state === 'completed'
      ? `Job ${id} is finished: there is nothing to go on with.`
      : `Job ${id} is one of the service: “ev serve” goes on with it by itself, whenever it runs.`
  return new EvError('usage', sentence)
}

function jobOf(resumed: Resumed, { id }: Job, { name }: Plan, needed: number | null): Job {
  if (resumed === null) {
    throw new EvError('usage', `Job ${id} was resumed by another meanwhile: “ev jobs show ${id}”.`)
  }
  if ('job' in resumed) return resumed.job
  throw new EvError(
    'usage',
    `Job ${id} needs ${needed} credits, and its account has ${resumed.creditsLeft} left today in the plan ${name}. Resume it tomorrow, or give the account another plan: “ev accounts set-plan”.`,
  )
}
