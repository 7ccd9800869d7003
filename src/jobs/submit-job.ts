import {
  creditsExceededError,
  creditsLeft,
  creditsUsedUpError,
} from '../accounts/credits/credit-store.ts'
import type { UsageLedger } from '../accounts/credits/usage-ledger.ts'
import { type Plan, periodStart } from '../accounts/plan.ts'
import { type BeforeCommit, type Database, type Trx, writeWith } from '../db/database.ts'
import type { Clock } from '../platform/clock.ts'
import { isRefusal } from '../platform/operation-error.ts'
import { jobError } from './errors.ts'
import {
  dropLoading,
  type Loaded,
  loadJob,
  queueLoaded,
  type Row,
  type Submission,
} from './import/load-job.ts'
import { emitJobEvent } from './job-events.ts'
import { getAccountLoad } from './job-list.ts'
import { assignJobNumber } from './job-number.ts'
import { type Job, type SubmitOptions, toSourceFields } from './job-store.ts'
import type { JobWorker } from './worker/worker-deps.ts'

export type JobServices = LimitServices &
  Parameters<typeof loadJob>[0] & {
    readonly clock: Clock
    readonly ledger: Pick<UsageLedger, 'refused'>
    /** Left out if another process works on jobs; it notices the job within seconds. */
    readonly worker?: Pick<JobWorker, 'take' | 'drop'>
  }

export type JobInput = Owner &
  Pick<Submission, 'keyId' | 'type' | 'name' | 'sandbox' | 'deduplicate'> & {
    /** The format of the rows; left out if the results do not depend on it. */
    readonly source?: object
    readonly options: SubmitOptions
    /** Left out if it is known only after reading the rows. */
    readonly rowCount?: number
    readonly rows: AsyncIterable<readonly Row[]> | Iterable<readonly Row[]>
    /** Whether the job gets a number; left out if it gets none. */
    readonly isNumbered?: boolean
    /** Public URL of the service, for the event of a list of which no row is verified. */
    readonly baseUrl?: string
    /** Runs after the rows are stored and before the job is queued. */
    readonly afterLoad?: (loaded: Loaded) => Promise<void>
  }

/**
 * Stores a list as a job and queues it with its credits reserved. Throws `credits_used_up`,
 * `credits_exceeded`, `concurrent_jobs_exceeded`, `stored_rows_exceeded` and `list_empty`; nothing
 * is left of the job then.
 */
export async function submitJob(
  services: JobServices,
  input: JobInput,
  beforeCommit?: BeforeCommit<Job>,
): Promise<Job> {
  const { accountId, plan, type } = input
  // A list that needs more credits is refused before all of it is stored.
  const creditsMax = await creditsAvailable(services, input)
  const openLists = countOpenLists(type)
  const rowsMax = await checkPlanLimits(services, input, { openLists, rows: input.rowCount ?? 1 })
  const isCounted = input.rowCount !== undefined
  const rows = isCounted ? input.rows : rowsThatFit(services, input, input.rows, rowsMax)
  const loaded = await loadJob(services, toSubmission(input), rows, creditsMax)
  if (loaded === null) {
    await services.ledger.refused(accountId, plan)
    throw creditsExceededError(plan, services.clock.now(), { left: creditsMax ?? 0, needed: null })
  }
  return queueOrDrop(services, input, loaded, beforeCommit)
}

type QueueInput = Pick<
  JobInput,
  'accountId' | 'plan' | 'type' | 'options' | 'isNumbered' | 'baseUrl' | 'afterLoad'
>

/** Queues a loaded job and notifies the worker. Deletes the job if it cannot be queued. */
export async function queueOrDrop(
  services: JobServices,
  input: QueueInput,
  loaded: Loaded,
  beforeCommit?: BeforeCommit<Job>,
): Promise<Job> {
  const { database, ledger, worker } = services
  const { accountId, plan } = input
  try {
    if (loaded.total === 0) throw jobError('list_empty', {})
    await input.afterLoad?.(loaded)
    const queue = (trx: Trx) => queueIn(services, trx, input, loaded)
    const job = await writeWith(database, queue, beforeCommit)
    if (job.finished_at === null) worker?.take(job.id)
    return job
  } catch (error) {
    await dropLoading(database, loaded.jobId)
    // Written after the failed transaction, which would have rolled the event back.
    if (isRefusal(error, 'credits_exceeded')) await ledger.refused(accountId, plan)
    throw error
  }
}

const countOpenLists = (type: JobInput['type']) => (type === 'single' ? 0 : 1)

/** Returns the credits left for the day; null if there is no limit. Throws `credits_used_up`. */
export async function creditsAvailable(
  { database, clock, ledger, metrics }: JobServices,
  { accountId, plan, sandbox }: Pick<JobInput, 'accountId' | 'plan' | 'sandbox'>,
): Promise<number | null> {
  const limit = plan.creditsPerDay
  if (sandbox || limit === null) return null
  const now = clock.now()
  const left = await creditsLeft(database, { accountId, period: periodStart(now), limit })
  if (left > 0) return left
  await ledger.refused(accountId, plan)
  metrics?.refused('credits')
  throw creditsUsedUpError(limit, now)
}

const toSubmission = ({ source, options, ...input }: JobInput): Submission => ({
  accountId: input.accountId,
  keyId: input.keyId,
  type: input.type,
  name: input.name,
  sandbox: input.sandbox,
  deduplicate: input.deduplicate,
  source: JSON.stringify({ ...source, ...toSourceFields(options) }),
})

async function queueIn(
  services: JobServices,
  trx: Trx,
  input: QueueInput,
  loaded: Loaded,
): Promise<Job> {
  const { plan, options } = input
  const openLists = countOpenLists(input.type)
  const now = services.clock.now()
  const queued = await queueLoaded(trx, loaded, { now, creditsPerDay: plan.creditsPerDay })
  if ('job' in queued) {
    await checkPlanLimits(services, input, { openLists, rows: loaded.total }, trx)
    await options.webhook?.insert(trx, queued.job.id)
    await emitIfFinished(services, trx, queued.job, input)
    if (!input.isNumbered) return queued.job
    const number = await assignJobNumber(trx, queued.job, now)
    return { ...queued.job, number }
  }
  throw creditsExceededError(plan, now, { left: queued.creditsLeft, needed: loaded.addressCount })
}

/** Emits the event of a list whose rows all keep a result. */
async function emitIfFinished(
  { database, random }: JobServices,
  trx: Trx,
  job: Job,
  { baseUrl = '' }: QueueInput,
): Promise<void> {
  if (job.finished_at === null) return
  const dueAt = database.steadyClock.now()
  await emitJobEvent(trx, job, { now: job.finished_at, dueAt, random, baseUrl })
}

type Owner = { readonly accountId: string; readonly plan: Plan }

/** What a request adds to the load of its account. */
type Added = {
  readonly rows: number
  /** 1 for a list, which stays open until it is finished. */
  readonly openLists: 0 | 1
}

type LimitServices = {
  readonly database: Database
  /** Counts refusals by their reason. */
  readonly metrics?: { refused(limit: 'concurrent-jobs' | 'stored-rows' | 'credits'): void }
}

/**
 * Throws `concurrent_jobs_exceeded` and `stored_rows_exceeded`. Before a list is stored, this check
 * saves the work. In the transaction that has just stored it, the check is exact, because such
 * transactions run one at a time. Returns how many rows may be stored; null for any number.
 */
export async function checkPlanLimits(
  services: LimitServices,
  { accountId, plan }: Owner,
  added: Added,
  trx?: Trx,
): Promise<number | null> {
  const load = await getAccountLoad(trx ?? services.database.reader, accountId)
  const included = trx === undefined ? NO_LOAD : added
  const openLists = load.openLists - included.openLists
  const storedRows = load.storedRows - included.rows
  const { concurrentJobs: max, storedRows: rowsMax } = plan
  if (max !== null && added.openLists === 1 && openLists >= max) {
    services.metrics?.refused('concurrent-jobs')
    throw jobError('concurrent_jobs_exceeded', { plan: plan.name, openLists, max })
  }
  if (rowsMax === null || added.rows === 0) return null
  if (storedRows + added.rows <= rowsMax) return rowsMax - storedRows
  throw storedRowsExceeded(services, plan, storedRows, { rows: added.rows, isMore: false })
}

const NO_LOAD: Added = { rows: 0, openLists: 0 }

/**
 * Yields the rows of a list of unknown length while they fit; throws at the first batch that does
 * not.
 */
async function* rowsThatFit(
  services: LimitServices,
  { plan }: Owner,
  rows: AsyncIterable<readonly Row[]> | Iterable<readonly Row[]>,
  rowsMax: number | null,
): AsyncGenerator<readonly Row[]> {
  let count = 0
  for await (const batch of rows) {
    count += batch.length
    if (rowsMax !== null && count > rowsMax) {
      const storedRows = (plan.storedRows ?? 0) - rowsMax
      throw storedRowsExceeded(services, plan, storedRows, { rows: rowsMax, isMore: true })
    }
    yield batch
  }
}

function storedRowsExceeded(
  { metrics }: LimitServices,
  { name: plan, storedRows: max }: Plan,
  storedRows: number,
  { rows, isMore }: { readonly rows: number; readonly isMore: boolean },
) {
  metrics?.refused('stored-rows')
  return jobError('stored_rows_exceeded', {
    plan,
    storedRows,
    rows,
    isMore,
    max: max ?? 0,
  })
}
