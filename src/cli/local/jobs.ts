import { findAccount } from '../../accounts/account-store.ts'
import type { Config } from '../../config/settings.ts'
import type { Database } from '../../db/database.ts'
import { getRemainingWork, listJobs } from '../../jobs/job-list.ts'
import type { Job, Metadata } from '../../jobs/job-store.ts'
import { estimateTimeLeft } from '../../jobs/waits/time-left.ts'
import { buildWaitReport, describeWait } from '../../jobs/waits/wait-report.ts'
import { SECOND } from '../../platform/clock.ts'
import type { CliContext } from '../context.ts'
import { closeAll, openAll } from '../database.ts'
import { databaseName } from '../database-location.ts'
import { belongsTo, jobContext, jobStatus, withJob } from '../jobs/job-status.ts'
import { toView } from '../jobs/job-view.ts'
import { isoTimeOrNull, timeText } from '../print.ts'
import {
  isActive,
  JOBS_MAX,
  type JobsBackend,
  type JobView,
  type ShownJob,
} from '../remote/jobs.ts'

/** Manages the jobs of `ev bulk` and of all accounts in the databases of this machine. */
export function createLocalJobs(context: CliContext, config: Config): JobsBackend {
  // Most runs only list jobs.
  const loadChanges = async () => {
    const { createJobChanges } = await import('./job-changes.ts')
    return createJobChanges(context, config)
  }
  return {
    location: databaseName(config),
    async list(metadata, max) {
      const databases = await openAll(context, config)
      try {
        const all = await jobsOf(databases, config, metadata)
        return { jobs: all.slice(0, max), older: Math.max(0, all.length - max) }
      } finally {
        await closeAll(databases)
      }
    },
    get: id =>
      withJob(context, config, id, async (database, job) =>
        toView(job, jobStatus(job, await jobContext(database, config))),
      ),
    show: id => withJob(context, config, id, (database, job) => readShown(database, config, job)),
    resume: async id => (await loadChanges()).resume(id),
    finish: async id => (await loadChanges()).finish(id),
    cancel: async id => (await loadChanges()).cancel(id),
    delete: async id => (await loadChanges()).delete(id),
    reverify: async (id, selection) => (await loadChanges()).reverify(id, selection),
    changes: async (id, max) => (await loadChanges()).changes(id, max),
    downloadUrl: async (id, file) => (await loadChanges()).downloadUrl(id, file),
  }
}

/** Lists the jobs with this metadata, newest first. */
async function jobsOf(
  databases: readonly Database[],
  config: Config,
  metadata: Metadata,
): Promise<JobView[]> {
  const all = databases.map(async database => {
    const context = await jobContext(database, config)
    return (await listJobs(database, metadata, JOBS_MAX))
      .filter(job => belongsTo(databases, database, job))
      .map(job => ({ job, status: jobStatus(job, context) }))
  })
  return (await Promise.all(all))
    .flat()
    .sort((a, b) => b.job.created_at - a.job.created_at)
    .map(({ job, status }) => toView(job, status))
}

async function readShown(database: Database, config: Config, job: Job): Promise<ShownJob> {
  const status = jobStatus(job, await jobContext(database, config))
  const { queued, probing, waiting } = await getRemainingWork(database, job.id)
  const report = await buildWaitReport({ database, engine: null }, job)
  const leftMs = isActive(status) ? estimateTimeLeft(job, null, report) : null
  return {
    job: toView(job, status),
    account: job.account_id === null ? null : await findAccount(database, job.account_id),
    queued,
    inFlight: probing,
    waiting: waiting.map(({ operator, items, dueAt }) => ({
      operator,
      items,
      due_at: isoTimeOrNull(dueAt),
    })),
    secondsLeft: leftMs === null ? null : Math.ceil(leftMs / SECOND),
    waits: report.waits.map(wait => describeWait(wait, timeText)),
  }
}
