import { accountIn } from '../../accounts/account-store.ts'
import { createUsageLedger, type UsageLedger } from '../../accounts/credits/usage-ledger.ts'
import { findPlan, mergePlans, type Plan } from '../../accounts/plan.ts'
import type { Config } from '../../config/settings.ts'
import type { Database } from '../../db/database.ts'
import { cancelJob, deleteJob, finishJob } from '../../jobs/change-job.ts'
import type { Job } from '../../jobs/job-store.ts'
import { resumeJob } from '../../jobs/resume-job.ts'
import { formatNumber, pluralize } from '../../platform/format.ts'
import { silentLog } from '../../platform/log.ts'
import { OperationError } from '../../platform/operation-error.ts'
import { confirm } from '../confirm.ts'
import type { CliContext } from '../context.ts'
import { auditServices } from '../database.ts'
import { printText } from '../print.ts'
import { readConfig } from '../settings.ts'
import { isActive, isOfService, jobContext, jobStatus, withJob } from './job-status.ts'
import { deleteStdinCopy } from './stdin-copy.ts'

export type Flags = { readonly yes?: boolean; readonly [setting: string]: unknown }

/** Runs `ev jobs resume` and returns the exit code. */
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

/** Runs `ev jobs cancel` and returns the exit code. */
export function cancelCommand(context: CliContext, id: string, flags: Flags): Promise<number> {
  const config = readConfig(context, flags)
  return withJob(context, config, id, async (database, job) => {
    const wasActive = isActive(jobStatus(job, await jobContext(database, config)))
    const { isChanged } = await cancelJob({ database }, job)
    if (!isChanged) {
      throw new OperationError('job_not_cancellable', { id: job.id, state: 'cancelled' })
    }
    await deleteStdinCopy(database, config, job)
    printText(
      context,
      `Cancelled ${job.id}: ${doneOf(job)} rows were finished.` +
        `${wasActive ? stopText(job) : ''}\n`,
    )
    return 0
  })
}

/** Runs `ev jobs finish` and returns the exit code. */
export function finishCommand(context: CliContext, id: string, flags: Flags): Promise<number> {
  const config = readConfig(context, flags)
  return withJob(context, config, id, async (database, found) => {
    const { job } = await finishJob({ database, ...auditServices(context) }, found)
    const status = jobStatus(job, await jobContext(database, config))
    const waiting = pluralize(job.total - job.done, 'row')
    const text =
      job.state === 'completed'
        ? `${job.id} is already completed.`
        : `Finishing ${job.id}: ${waiting} without a result. ${finishText(job, isActive(status))}`
    printText(context, `${text}\n`)
    return 0
  })
}

function finishText(job: Job, isRunning: boolean): string {
  if (isRunning) return 'Waiting rows get their current result within seconds.'
  if (isOfService(job)) return 'The next "ev serve" finishes it.'
  return `To write its output, run "ev jobs resume ${job.id}".`
}

const doneOf = ({ done, total }: Job) => `${formatNumber(done)} of ${formatNumber(total)}`

const stopText = (job: Job) =>
  isOfService(job)
    ? ' The service stops working on it within seconds.'
    : ' The process that works on it stops within seconds.'

/** Runs `ev jobs delete` and returns the exit code. */
export function deleteCommand(context: CliContext, id: string, flags: Flags): Promise<number> {
  const config = readConfig(context, flags)
  return withJob(context, config, id, async (database, job) => {
    await confirm(context, flags, `delete ${job.id} and its ${pluralize(job.total, 'row')}`)
    const onDeleted = () => deleteStdinCopy(database, config, job)
    await deleteJob({ database, settings: config }, job, { isErased: true, onDeleted })
    printText(context, `Deleted ${job.id} with its ${pluralize(job.total, 'row')}.\n`)
    return 0
  })
}

/**
 * Resumes a cancelled or failed job of the service. A running service picks it up within seconds.
 */
async function resumeInService(
  context: CliContext,
  database: Database,
  config: Config,
  job: Job,
): Promise<void> {
  await withLedger(context, database, config, job, async (ledger, plan) => {
    const { clock } = context
    const resumed = await resumeJob({ database, clock, ledger }, { job, plan })
    const isRunning = isActive(jobStatus(resumed, await jobContext(database, config)))
    printText(
      context,
      `Resumed ${job.id}: ${doneOf(job)} rows were finished. ` +
        `${isRunning ? 'The service continues it within seconds.' : 'The next "ev serve" continues it.'}\n`,
    )
  })
}

/** Calls `work` with the plan of the job's account and a ledger. */
export async function withLedger(
  context: CliContext,
  database: Database,
  config: Config,
  job: Job,
  work: (ledger: UsageLedger, plan: Plan) => Promise<void>,
): Promise<void> {
  const { clock, random } = context
  const plans = mergePlans(config.plans)
  const account = await accountIn(database.db, job.account_id ?? '')
  const ledger = createUsageLedger({ database, clock, random, log: silentLog, plans })
  try {
    await work(ledger, findPlan(plans, account?.plan ?? ''))
  } finally {
    await ledger.stop()
  }
}
