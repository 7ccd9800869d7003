import { accountIn } from '../../accounts/account-store.ts'
import { createUsageLedger } from '../../accounts/credits/usage-ledger.ts'
import { findPlan, mergePlans } from '../../accounts/plan.ts'
import type { Config } from '../../config/settings.ts'
import type { Database } from '../../db/database.ts'
import type { Job } from '../../jobs/job-store.ts'
import { resumeJob } from '../../jobs/resume-job.ts'
import { silentLog } from '../../platform/log.ts'
import type { CliContext } from '../context.ts'
import { isAtWork, jobContext, jobStatus } from './job-status.ts'

/** Opens a job of the service that was cancelled or failed; a service that runs notices within seconds. */
export async function resumeInService(
  context: CliContext,
  database: Database,
  config: Config,
  job: Job,
): Promise<void> {
  const { clock, random } = context
  const plans = mergePlans(config.plans)
  const account = await accountIn(database.db, job.account_id ?? '')
  const ledger = createUsageLedger({ database, clock, random, log: silentLog, plans })
  try {
    const plan = findPlan(plans, account?.plan ?? '')
    const resumed = await resumeJob({ database, clock, ledger }, { job, plan })
    const runs = isAtWork(jobStatus(resumed, await jobContext(database, config)))
    context.stdout.write(
      `Resumed ${job.id}: ${job.done} of ${job.total} rows were done. ` +
        `${runs ? 'The service goes on with it within seconds.' : 'The next “ev serve” goes on with it.'}\n`,
    )
  } finally {
    await ledger.stop()
  }
}
