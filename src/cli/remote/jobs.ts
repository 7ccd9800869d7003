import type { EvClient } from '../../client/client.ts'
import type { ChangePage, Job, ListedJob } from '../../client/types.ts'
import type { Class } from '../../engine/verdict/reason.ts'
import type { Vocabulary } from '../../formats/vocabulary/names.ts'
import type { DeduplicateBy } from '../../jobs/import/import-counter.ts'
import type { Metadata } from '../../jobs/job-store.ts'
import { EvError } from '../../platform/error.ts'
import { omitUndefined } from '../../platform/omit-undefined.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { Format } from '../bulk/row-text.ts'
import { timeText } from '../print.ts'
import { ownAccount } from '../service.ts'

/** The jobs that the commands manage: of a database, or of a service. */
export type JobsBackend = {
  /** The data directory, the database or the URL, for messages. */
  readonly location: string
  /** Lists the jobs with this metadata, newest first. */
  list(metadata: Metadata, max: number): Promise<JobsFound>
  // The following methods take the ID of a job, or a unique prefix.
  get(id: string): Promise<JobView>
  show(id: string): Promise<ShownJob>
  /** Null for a job of `ev bulk`, which the caller resumes. */
  resume(id: string): Promise<ChangedJob | null>
  finish(id: string): Promise<ChangedJob>
  cancel(id: string): Promise<ChangedJob>
  delete(id: string): Promise<void>
  reverify(id: string, selection: Selection): Promise<Reverified>
  /** Compares a re-verified list with the previous one. */
  changes(id: string, max: number): Promise<ChangesView>
  downloadUrl(id: string, file: DownloadFile): Promise<DownloadUrl>
}

type JobsFound = {
  readonly jobs: readonly JobView[]
  /** Number of older jobs; null if there are some, and their number is not known. */
  readonly older: number | null
}

/** Most jobs that are listed, as in a database: finished jobs are deleted after a while. */
export const JOBS_MAX = 1_000

/** A job as JSON. */
export type JobView = {
  readonly job_id: string
  /** `list` is a job of `ev bulk`; all other types are jobs of the service. */
  readonly type: string
  readonly state: JobStatus
  readonly account_id: string | null
  readonly name: string | null
  readonly metadata: Metadata
  readonly webhook_id: string | null
  readonly previous_job_id: string | null
  readonly schedule_id: string | null
  /** Path of the list; for a job of the service, its name or type. */
  readonly list: string
  readonly output: string | null
  readonly total: number
  readonly done: number
  readonly progress: number
  /** Null if it is not known. */
  readonly duplicates: number | null
  readonly created_at: string | null
  readonly finished_at: string | null
  readonly written_at: string | null
} & Readonly<Record<Class, number>>

/**
 * Status of a job as it is shown. The stored state is not enough: a process that was killed leaves
 * its job `processing`, so an unfinished job is `stopped` when no process holds its lock. In
 * `writing` and `unwritten` all results are stored and the output is being written, or is missing
 * or incomplete.
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

/** Whether the job was submitted to `ev serve`; only the service processes it. */
export const isOfService = ({ account_id }: Pick<JobView, 'account_id'>) => account_id !== null

/** Whether a process may be working on the job. */
export const isActive = (status: JobStatus): boolean =>
  ['loading', 'queued', 'processing', 'writing'].includes(status)

export type ShownJob = {
  readonly job: JobView
  readonly account: { readonly name: string } | null
  /** Rows that were not tried, and rows in flight; null if it is not known. */
  readonly queued: number | null
  readonly inFlight: number | null
  /** Rows that wait, by operator. */
  readonly waiting: readonly WaitingRows[]
  readonly secondsLeft: number | null
  /** What rows wait for, in sentences. */
  readonly waits: readonly string[]
}

type WaitingRows = {
  readonly operator: string
  readonly items: number
  /** Null if it is not known. */
  readonly due_at: string | null
}

export type ChangedJob = {
  readonly job: JobView
  /** Whether a process works on it, or a service runs that will. */
  readonly isRunning: boolean
}

export type Selection = {
  /** All classes if left out. */
  readonly only?: readonly Class[]
  readonly olderThanDays?: number
}

type Reverified = ChangedJob & { readonly previousId: string }

export type ChangesView = Omit<ChangePage['data'], 'next_cursor' | 'has_more'> & {
  readonly job_id: string
}

export type DownloadFile = {
  readonly format: Format
  readonly only?: readonly Class[]
  readonly raw?: boolean
  readonly deduplicate?: DeduplicateBy
  readonly vocabulary?: Vocabulary
  /** Also of a job that is not completed. */
  readonly partial?: boolean
  /** ID of the key whose rights the URL has; undefined for one of the account. */
  readonly keyId?: string
}

type DownloadUrl = {
  readonly url: string
  readonly expires_at: string
  /** Null if it is not known. */
  readonly key_id: string | null
  /** What ends the URL and restricts it. */
  readonly note: string
}

/** Manages the jobs of the account of a key. */
export function createRemoteJobs(client: EvClient, location: string): JobsBackend {
  const { jobs } = client
  /** Calls `work` with the ID of a job and its owner. */
  const withJob = async <T>(
    id: string,
    work: (jobId: string, account: Owner) => Promise<T>,
  ): Promise<T> => {
    const account = await ownAccount(client, undefined)
    return work(await resolveJobId(client, id), account)
  }
  const change = (id: string, run: (jobId: string) => Promise<Job>) =>
    withJob(id, async (jobId, account) => ({
      job: toView(await run(jobId), account),
      isRunning: true,
    }))
  return {
    location,
    async list(metadata, max) {
      const account = await ownAccount(client, undefined)
      const found: JobView[] = []
      const query = { limit: Math.min(max, PAGE_MAX), include_sandbox: 'true', metadata } as const
      for await (const job of jobs.list(query)) {
        if (job.type === 'single') continue
        if (found.length === max) return { jobs: found, older: null }
        found.push(toView(job, account))
      }
      return { jobs: found, older: 0 }
    },
    get: id => withJob(id, async (jobId, account) => toView(await jobs.get(jobId), account)),
    show: id => withJob(id, async (jobId, account) => toShown(await jobs.get(jobId), account)),
    resume: id => change(id, jobId => jobs.resume(jobId)),
    finish: id => change(id, jobId => jobs.finish(jobId)),
    cancel: id => change(id, jobId => jobs.cancel(jobId)),
    delete: async id => jobs.delete(await resolveJobId(client, id)),
    reverify: (id, { only, olderThanDays }) =>
      withJob(id, async (previousId, account) => {
        const selection = omitUndefined({ only: only && [...only], older_than_days: olderThanDays })
        const created = await jobs.reverify(previousId, selection)
        return { previousId, job: toView(created, account), isRunning: true }
      }),
    async changes(id, max) {
      const jobId = await resolveJobId(client, id)
      const { next_cursor: _, has_more: __, ...counts } = await jobs.changes(jobId, { limit: 1 })
      const items: ChangesView['items'] = []
      for await (const row of jobs.changedRows(jobId, { limit: Math.min(max, PAGE_MAX) })) {
        items.push(row)
        if (items.length === max) break
      }
      return { job_id: jobId, ...counts, items }
    },
    async downloadUrl(id, { format, only, raw, deduplicate, vocabulary, partial, keyId }) {
      if (keyId !== undefined) throw keyOfUrl()
      const jobId = await resolveJobId(client, id)
      const options = { format, filter: only && [...only], raw, deduplicate, vocabulary, partial }
      const { url, expires_at } = await jobs.downloadUrl(jobId, omitUndefined(options))
      const until = timeText(Date.parse(expires_at))
      const note = `The URL works for everyone until ${until}. It ends earlier if your key is revoked, rotated or expired, or if the job is deleted. The restrictions of your key apply to it.`
      return { url, expires_at, key_id: null, note }
    },
  }
}

/** Rows of a page. */
const PAGE_MAX = 100

const keyOfUrl = () =>
  new EvError(
    'usage',
    'On a service, a download URL has the rights of the API key that creates it. Omit --key, or set EV_KEY to the key.',
  )

type Owner = { readonly id: string; readonly name: string }

const toView = (job: Job | ListedJob, account: Owner): JobView => ({
  job_id: job.job_id,
  type: job.type,
  state: job.status,
  account_id: account.id,
  name: job.name,
  metadata: job.metadata,
  webhook_id: job.webhook_id ?? null,
  previous_job_id: job.previous_job_id ?? null,
  schedule_id: job.schedule_id ?? null,
  list: sanitizeText(job.name ?? job.type),
  output: null,
  total: job.total_emails,
  done: job.processed_emails,
  progress: job.progress,
  duplicates: null,
  ...job.data.classes,
  created_at: job.created_at,
  finished_at: job.data.completed_at,
  written_at: null,
})

function toShown(job: Job, account: Owner): ShownJob {
  const { waiting_for: waits = [], seconds_left: secondsLeft = null } = job
  return {
    job: toView(job, account),
    account,
    queued: null,
    inFlight: null,
    waiting: waits.flatMap(({ operator, emails, until }) =>
      operator === null ? [] : [{ operator, items: emails, due_at: until }],
    ),
    secondsLeft,
    waits: waits.map(({ detail }) => sanitizeText(detail, DETAIL_MAX)),
  }
}

/** A sentence about a wait. */
const DETAIL_MAX = 500

/** Shorter prefixes could select the wrong job by a typo. */
const PREFIX_MIN = 4

/** Adds what users leave out. Throws EvError if the prefix of an ID is too short. */
export function parseJobPrefix(idOrPrefix: string): string {
  const prefix = /^(job|ver)_/.test(idOrPrefix) ? idOrPrefix : `job_${idOrPrefix}`
  if (prefix.length >= 'job_'.length + PREFIX_MIN) return prefix
  throw new EvError(
    'usage',
    `"${sanitizeText(idOrPrefix)}" is too short for a job ID. Give at least ${PREFIX_MIN} characters after "job_".`,
  )
}

/** Returns the ID of the job with this ID or unique prefix. */
export async function resolveJobId({ jobs }: EvClient, idOrPrefix: string): Promise<string> {
  const prefix = parseJobPrefix(idOrPrefix)
  if (WHOLE_ID.test(prefix)) return prefix
  const found: string[] = []
  for await (const { job_id } of jobs.list({ limit: PAGE_MAX, include_sandbox: 'true' })) {
    if (job_id.startsWith(prefix)) found.push(job_id)
  }
  return selectJob(found, idOrPrefix, prefix, id => id)
}

const WHOLE_ID = /^(?:job_sbx|job|ver)_[a-z0-9]{20,}$/

/** Returns the only job that was found by a prefix, or the one with this ID. */
export function selectJob<J>(
  found: readonly J[],
  idOrPrefix: string,
  prefix: string,
  idOf: (job: J) => string,
): J {
  const [first, second] = found
  if (first === undefined) {
    throw new EvError(
      'no_input',
      `Job ${sanitizeText(idOrPrefix)} does not exist. To list jobs, run "ev jobs".`,
    )
  }
  if (second === undefined || idOf(first) === prefix) return first
  throw new EvError(
    'usage',
    `"${sanitizeText(idOrPrefix)}" matches ${idOf(first)} and ${idOf(second)}. Give more characters of the ID.`,
  )
}
