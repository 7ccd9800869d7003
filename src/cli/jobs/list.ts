import type { Config } from '../../config/settings.ts'
import type { Database } from '../../db/database.ts'
import { JOBS_MAX, listJobs } from '../../jobs/job-list.ts'
import {
  getListName,
  getProgress,
  type Job,
  type Metadata,
  parseMetadata,
  parseOrigin,
  parseWebhookId,
} from '../../jobs/job-store.ts'
import { formatNumber, pluralize } from '../../platform/format.ts'
import type { CliContext } from '../context.ts'
import { closeAll, databaseName, openAll } from '../database.ts'
import { parseInteger, parseMetadataFlags } from '../flag-values.ts'
import { isoTimeOrNull, printJson, printMessage, printText, timeText } from '../print.ts'
import { readConfig } from '../settings.ts'
import { type Column, table } from '../table.ts'
import { widthOf } from '../width.ts'
import { belongsTo, type JobStatus, jobContext, jobStatus, listAndOutput } from './job-status.ts'

export type ListFlags = {
  readonly json?: boolean
  readonly limit?: string
  readonly metadata?: readonly string[]
  readonly [setting: string]: unknown
}

/** Runs `ev jobs list` and returns the exit code. */
export async function listCommand(context: CliContext, flags: ListFlags): Promise<number> {
  const max = parseInteger('--limit', flags.limit ?? `${JOBS_MAX}`, [1, JOBS_MAX])
  const metadata = parseMetadataFlags(flags.metadata)
  const config = readConfig(context, flags)
  const databases = await openAll(context, config)
  try {
    const all = await jobsOf(databases, config, metadata)
    const status = all.slice(0, max)
    if (flags.json) {
      const objects = status.map(([job, state]) => jobObject(job, state))
      printJson(context, objects)
    } else if (status.length === 0) {
      printText(context, `No jobs in ${databaseName(config)}. To create one, run "ev bulk FILE".\n`)
    } else {
      context.stdout.write(table(COLUMNS, status.map(rowOf), widthOf(context, context.stdout)))
      if (all.length > max) {
        printMessage(context, 'note', `${pluralize(all.length - max, 'older job')} not shown.`)
      }
    }
    return 0
  } finally {
    await closeAll(databases)
  }
}

/** Lists the jobs with this metadata, newest first. */
async function jobsOf(
  databases: readonly Database[],
  config: Config,
  metadata: Metadata,
): Promise<JobWithStatus[]> {
  const all = databases.map(async database => {
    const context = await jobContext(database, config)
    const jobs = await listJobs(database, metadata)
    return jobs
      .filter(job => belongsTo(databases, database, job))
      .map((job): JobWithStatus => [job, jobStatus(job, context)])
  })
  return (await Promise.all(all)).flat().sort(([a], [b]) => b.created_at - a.created_at)
}

type JobWithStatus = readonly [Job, JobStatus]

const COLUMNS: readonly Column[] = [
  { title: 'ID' },
  { title: 'STATE' },
  { title: 'ROWS', align: 'right' },
  { title: 'DONE', align: 'right', dropRank: 5 },
  { title: 'DELIVERABLE', align: 'right', dropRank: 3 },
  { title: 'RISKY', align: 'right', dropRank: 2 },
  { title: 'UNDELIVERABLE', align: 'right', dropRank: 2 },
  { title: 'UNKNOWN', align: 'right', dropRank: 2 },
  { title: 'CREATED', dropRank: 4 },
  { title: 'TYPE', dropRank: 1 },
  { title: 'LIST' },
]

const rowOf = ([job, status]: JobWithStatus): string[] => [
  job.id,
  status,
  formatNumber(job.total),
  `${getProgress(job)}%`,
  formatNumber(job.deliverable),
  formatNumber(job.risky),
  formatNumber(job.undeliverable),
  formatNumber(job.unknown),
  timeText(job.created_at),
  job.type,
  // The last column, because its width is not limited.
  listAndOutput(job).list,
]

/** Returns the JSON form of a job. A list that is still loading has no rows yet. */
export function jobObject(job: Job, state: JobStatus) {
  const { list, output } = listAndOutput(job)
  return {
    job_id: job.id,
    /** `list` is a job of `ev bulk`; all other types are jobs of the service. */
    type: job.type,
    state,
    account_id: job.account_id,
    name: getListName(job),
    metadata: parseMetadata(job),
    webhook_id: parseWebhookId(job),
    previous_job_id: parseOrigin(job).previousJobId,
    schedule_id: parseOrigin(job).scheduleId,
    list,
    output,
    total: job.total,
    done: job.done,
    progress: getProgress(job),
    duplicates: job.duplicates,
    deliverable: job.deliverable,
    risky: job.risky,
    undeliverable: job.undeliverable,
    unknown: job.unknown,
    created_at: isoTimeOrNull(job.created_at),
    finished_at: isoTimeOrNull(job.finished_at),
    written_at: isoTimeOrNull(job.written_at),
  }
}
