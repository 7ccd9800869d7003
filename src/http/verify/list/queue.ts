import type { Context } from 'hono'
import { periodStart } from '../../../account/plan.ts'
import { creditsLeft } from '../../../store/account/credits.ts'
import type { Job } from '../../../store/job/jobs.ts'
import { type JobOptions, toSourceFields } from '../../../store/job/options.ts'
import {
  dropLoading,
  type Loaded,
  loadJob,
  queueLoaded,
  type Row,
  type Submission,
} from '../../../work/submit.ts'
import type { Env } from '../../context.ts'
import { ApiError } from '../../error/api-error.ts'
import { commit } from '../../guard/commit.ts'
import type { Service } from '../../service.ts'
import { quotaExceeded } from '../credits.ts'
import { estimatedTime } from '../estimate.ts'
import { emptyList } from './emails.ts'
import { type Added, checkRoom, rowsThatFit } from './room.ts'

/** What a path knows of the list that it was given. */
export type Listed = Pick<Submission, 'type' | 'name' | 'deduplicate'> & {
  /** Left out: nothing need be known of how its rows were written. */
  readonly source?: object
  readonly options: JobOptions
  /** Left out: that is known when they were read. */
  readonly rowCount?: number
  readonly rows: AsyncIterable<readonly Row[]> | Iterable<readonly Row[]>
}

/** Makes a job of a list: it is durable, with its credits and its answer, before that answer is sent. */
export async function queueList(
  c: Context<Env>,
  service: Service,
  { rows, rowCount, source: written = {}, options, ...listed }: Listed,
  present: (job: Job, estimated: string) => object,
): Promise<Response> {
  const { account, key } = c.get('caller')
  const owner = { accountId: account.id, keyId: key.id, sandbox: c.get('sandbox') }
  const source = JSON.stringify({ ...written, ...toSourceFields(options) })
  // A list that needs more is refused before all of it is stored.
  const openLists = listed.type === 'single' ? 0 : 1
  const rowsMax = await checkRoom(c, service, { openLists, rows: rowCount ?? 1 })
  const fitting = rowCount === undefined ? rowsThatFit(c, service, rows, rowsMax) : rows
  const askedMax = owner.sandbox ? null : await creditsLeftOf(c, service)
  const loaded = await loadJob(service, { ...listed, ...owner, source }, fitting, askedMax)
  if (loaded === null) {
    await tellRefused(c, service)
    throw notEnough(c, service, { left: askedMax ?? 0, needed: null })
  }
  try {
    if (loaded.total === 0) throw emptyList('The list has no rows.')
    const { jobId, domains } = loaded
    const estimated = await estimatedTime(service, {
      ...{ jobId, domains, sandbox: owner.sandbox, checkSmtp: options.checkSmtp },
    })
    const response = await commit(c, service, async trx => ({
      status: 200,
      body: present(await queueIn(c, service, trx, { loaded, openLists }), estimated),
    }))
    service.worker.take(loaded.jobId)
    return response
  } catch (error) {
    await dropLoading(service.database, loaded.jobId)
    // What is told of it would be undone with the transaction that it ended.
    if (error instanceof ApiError && error.code === 'quota_exceeded') await tellRefused(c, service)
    throw error
  }
}

/** One address that nobody waits for, strictly as it is written: a job of one row. */
export function queueOne(
  c: Context<Env>,
  service: Service,
  { email, ...options }: JobOptions & { readonly email: string },
): Promise<Response> {
  const listed = {
    type: 'single' as const,
    name: null,
    options,
    deduplicate: true,
    rowCount: 1,
    rows: [[{ text: email }]],
  }
  return queueList(c, service, listed, ({ id }) => ({
    success: true,
    verification_id: id,
    status: 'queued',
  }))
}

/** The rows of a list that is in memory, in the portions that `loadJob` takes. */
export function* portions(rows: readonly Row[]): Generator<readonly Row[]> {
  for (let at = 0; at < rows.length; at += PORTION_ROWS) yield rows.slice(at, at + PORTION_ROWS)
}

/** Read without a pause: 3 ms. */
const PORTION_ROWS = 500

/** The queued form of the interface (2.4); the newer paths count duplicates as well. */
export function presentQueued(job: Job, estimated: string, message: string) {
  const { id, type, total, malformed, duplicates } = job
  return {
    success: true,
    job_id: id,
    status: 'queued',
    total_emails: total,
    valid_emails: total - malformed,
    invalid_format_emails: malformed,
    ...(type !== 'bulk' && { duplicates }),
    estimated_time: estimated,
    message,
  }
}

/** Where the newer paths say that a job is to be had. */
export const linksOf = ({ id }: Job) => ({
  status_url: `/v1/jobs/${id}`,
  download_url: `/v1/jobs/${id}/download`,
})

/** Credits that are left of the day; null: any number. */
export async function creditsLeftOf(
  c: Context<Env>,
  { database, clock }: Service,
): Promise<number | null> {
  const { account, plan } = c.get('caller')
  if (plan.creditsPerDay === null) return null
  const period = periodStart(clock.now())
  return creditsLeft(database, { accountId: account.id, period, limit: plan.creditsPerDay })
}

async function queueIn(
  c: Context<Env>,
  service: Service,
  trx: Parameters<typeof queueLoaded>[0],
  { loaded, openLists }: Pick<Added, 'openLists'> & { readonly loaded: Loaded },
): Promise<Job> {
  const { creditsPerDay } = c.get('caller').plan
  const queued = await queueLoaded(trx, loaded, { now: service.clock.now(), creditsPerDay })
  if ('job' in queued) {
    await checkRoom(c, service, { openLists, rows: loaded.total }, trx)
    return queued.job
  }
  throw notEnough(c, service, { left: queued.creditsLeft, needed: loaded.asked })
}

const notEnough = (
  c: Context<Env>,
  { clock }: Service,
  o: { readonly left: number; readonly needed: number | null },
) => quotaExceeded(c.get('caller').plan, clock.now(), o)

function tellRefused(c: Context<Env>, { books }: Service): Promise<void> {
  const { account, plan } = c.get('caller')
  return books.refused(account.id, plan)
}
