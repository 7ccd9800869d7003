import { creditsExceededError } from '../../accounts/credits/credit-store.ts'
import type { Plan } from '../../accounts/plan.ts'
import type { BeforeCommit, Trx } from '../../db/database.ts'
import { yieldToEventLoop } from '../../platform/clock.ts'
import { jobError } from '../errors.ts'
import { dropLoading, type Loaded, newId, type Submission, toJob } from '../import/load-job.ts'
import {
  createJob,
  findJob,
  type Job,
  parseJobOptions,
  parseMetadata,
  type SubmitOptions,
  toSourceFields,
} from '../job-store.ts'
import { checkPlanLimits, creditsAvailable, type JobServices, queueOrDrop } from '../submit-job.ts'
import { copyRows, countSelected } from './copy-rows.ts'
import type { Selection } from './selection.ts'

type ReverifyInput = {
  /** A job of an account. */
  readonly job: Job
  /** The plan of its account. */
  readonly plan: Plan
  /** The key to which the usage is charged. */
  readonly keyId: string
  readonly selection: Selection
  readonly options: SubmitOptions
  /** Null or left out if no schedule creates the job. */
  readonly scheduleId?: string | null
}

/** Returns the options that a job has in common with the one that verifies it again. */
export const inheritOptions = (job: Job): SubmitOptions => ({
  checkSmtp: parseJobOptions(job).checkSmtp,
  forceRefresh: true,
  metadata: parseMetadata(job),
})

/**
 * Creates a job with all rows of a finished list: it verifies the selected rows again, and has the
 * previous results of all others. Throws `job_not_list`, `job_not_reverifiable`,
 * `no_row_selected`, `job_not_found`, and as `submitJob`; nothing is left of the new job then.
 */
export async function reverifyJob(
  services: JobServices,
  input: ReverifyInput,
  beforeCommit?: BeforeCommit<Job>,
): Promise<Job> {
  const { job, plan, options } = input
  const accountId = checkReverifiable(job)
  const sandbox = job.sandbox === 1
  const creditsMax = await creditsAvailable(services, { accountId, plan, sandbox })
  await checkPlanLimits(services, { accountId, plan }, { openLists: 1, rows: job.total })
  await checkSelected(services, { ...input, accountId, creditsMax })
  const loaded = await loadCopy(services, input, { accountId, creditsMax })
  const queued = { accountId, plan, type: loaded.submission.type, options }
  return queueOrDrop(services, queued, loaded, async (trx, created) => {
    await checkUnchanged(trx, job)
    await beforeCommit?.(trx, created)
  })
}

function checkReverifiable({ id, state, type, account_id, finished_at }: Job): string {
  if (type === 'single' || account_id === null) throw jobError('job_not_list', {})
  if (finished_at === null) throw jobError('job_not_reverifiable', { id, state })
  return account_id
}

type Account = {
  readonly accountId: string
  /** Null if there is no limit. */
  readonly creditsMax: number | null
}

/** A list that selects no row or needs more credits is refused before it is copied. */
async function checkSelected(
  { database, clock, ledger }: JobServices,
  { job, plan, selection, accountId, creditsMax }: ReverifyInput & Account,
): Promise<void> {
  const { rows, addresses } = await countSelected(database, job.id, selection)
  if (rows === 0) throw jobError('no_row_selected', {})
  if (creditsMax === null || addresses <= creditsMax) return
  await ledger.refused(accountId, plan)
  throw creditsExceededError(plan, clock.now(), { left: creditsMax, needed: addresses })
}

/** Stores the new job in state `loading`; after a crash it is deleted as other such jobs are. */
async function loadCopy(
  { database, random, priority }: JobServices,
  { job, keyId, selection, options, scheduleId = null }: ReverifyInput,
  { accountId, creditsMax }: Account,
): Promise<Loaded> {
  const submission: Submission = {
    accountId,
    keyId,
    type: job.type as Submission['type'],
    name: job.name,
    sandbox: job.sandbox === 1,
    deduplicate: true,
    source: JSON.stringify({
      ...formatFields(job),
      ...toSourceFields({ ...options, previousJobId: job.id, scheduleId }),
    }),
  }
  const jobId = newId(submission, random)
  await createJob(database, toJob(jobId, submission))
  try {
    const yieldToOthers = () => priority?.yieldToRequests('import') ?? yieldToEventLoop()
    const kept = await copyRows(database, { from: job.id, to: jobId, selection, yieldToOthers })
    const { rows, addresses } = await countSelected(database, jobId, UNVERIFIED)
    // The last selected address was erased while the job was copied.
    if (rows === 0) throw jobError('no_row_selected', {})
    const { total, malformed, no_address: noAddress, duplicates } = job
    const addressCount = creditsMax === null ? null : addresses
    const counts = { total, malformed, noAddress, duplicates, addressCount }
    return { jobId, submission, ...counts, domains: NONE, kept }
  } catch (error) {
    await dropLoading(database, jobId)
    throw error
  }
}

/** Selects only the rows without a result. */
const UNVERIFIED: Selection = { checkedBefore: 0 }

/** The remaining time is not estimated. */
const NONE: ReadonlyMap<string, number> = new Map()

/** Returns the fields of a job's `source` that describe the format of its rows. */
function formatFields(job: Job): object {
  const fields = Object.entries(JSON.parse(job.source) as object)
  return Object.fromEntries(fields.filter(([name]) => !OPTION_FIELDS.has(name)))
}

/** The fields of `toSourceFields`. */
const OPTION_FIELDS = new Set([
  ...['check_smtp', 'force_refresh', 'metadata', 'webhook_id', 'notify'],
  ...['previous_job_id', 'schedule_id'],
])

/** A job that was deleted or resumed while it was copied left an incomplete copy. */
async function checkUnchanged(trx: Trx, { id, finished_at }: Job): Promise<void> {
  const job = await findJob({ db: trx }, id)
  if (job === null || job.state === 'loading') throw jobError('job_not_found', { id })
  if (job.finished_at === finished_at) return
  throw jobError('job_not_reverifiable', { id, state: job.state })
}
