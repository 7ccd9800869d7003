import type { Context } from 'hono'
import type { ExternalDeps, Row } from '../../jobs/import/load-job.ts'
import { DEFAULT_JOB_OPTIONS, type Job, type SubmitOptions } from '../../jobs/job-store.ts'
import { type JobInput, submitJob } from '../../jobs/submit-job.ts'
import { estimatedTime } from '../../jobs/waits/estimate.ts'
import { downloadUrl } from '../../webhooks/event.ts'
import type { ApiDeps } from '../api-deps.ts'
import type { Env } from '../context.ts'
import { requestError } from '../errors/request-errors.ts'
import { answerWith, type IdempotencyDeps } from '../middleware/idempotency.ts'
import {
  type GivenMetadata,
  type JobOptionDeps,
  presentJobWebhook,
  readJobWebhook,
  readMetadata,
} from './job-options.ts'

export type QueueDeps = Pick<ApiDeps, 'engine' | 'feedback' | 'ledger' | 'random' | 'settings'> &
  IdempotencyDeps &
  JobOptionDeps

/** Fields of a list that its route supplies. */
type Listed = Pick<
  JobInput,
  'type' | 'name' | 'deduplicate' | 'source' | 'options' | 'rowCount' | 'rows' | 'isNumbered'
> & {
  /** Whether rows may keep results of other services. */
  readonly keepsExternal?: boolean
}

/**
 * Creates a job from a list. The job, its credits and the response are committed before the
 * response is sent.
 */
export async function queueList(
  c: Context<Env>,
  service: QueueDeps,
  listed: Listed,
  present: (job: Job, estimated: string) => object,
): Promise<Response> {
  const { account, key, plan } = c.get('caller')
  const sandbox = c.get('sandbox')
  const { checkSmtp } = listed.options
  if (listed.type !== 'single' && !sandbox) await c.get('admitted').countList()
  let estimated = ''
  const input: JobInput = {
    ...listed,
    accountId: account.id,
    keyId: key.id,
    plan,
    sandbox,
    baseUrl: service.settings.baseUrl,
    async afterLoad({ jobId, domains }) {
      estimated = await estimatedTime(service, { jobId, domains, sandbox, checkSmtp })
    },
  }
  const services = listed.keepsExternal
    ? { ...service, external: readExternalDeps(service, input) }
    : service
  return answerWith<Job>(
    c,
    service,
    beforeCommit => submitJob(services, input, beforeCommit),
    job => ({
      status: 200,
      body: { ...present(job, estimated), ...presentJobWebhook(listed.options) },
    }),
  )
}

/** What decides which results of other services are kept, and adjusts them by own reports. */
const readExternalDeps = (
  { engine, feedback }: Pick<QueueDeps, 'engine' | 'feedback'>,
  { accountId, sandbox }: Pick<JobInput, 'accountId' | 'sandbox'>,
): ExternalDeps => ({
  classify: address => engine.classify(address),
  adjust: async (trx, results) => (sandbox ? results : feedback.adjust(trx, accountId, results)),
})

/** Queues one address, exactly as it is written, as a job of one row. */
export function queueOne(
  c: Context<Env>,
  service: QueueDeps,
  { email, ...options }: SubmitOptions & { readonly email: string },
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

/** Splits rows in memory into the chunks that `loadJob` takes. */
export function* toChunks(rows: readonly Row[]): Generator<readonly Row[]> {
  for (let at = 0; at < rows.length; at += CHUNK_ROWS) yield rows.slice(at, at + CHUNK_ROWS)
}

/** Rows of a chunk: 3 ms of work without a pause. */
const CHUNK_ROWS = 500

/** The queued response of the interface (2.4). Newer endpoints also count duplicates. */
export function presentQueued(job: Job, estimated: string, message: string) {
  const { id, type, total, malformed, no_address, duplicates } = job
  return {
    success: true,
    job_id: id,
    status: 'queued',
    total_emails: total,
    valid_emails: total - malformed - no_address,
    ...(type === 'bulk'
      ? { invalid_format_emails: malformed + no_address }
      : { invalid_format_emails: malformed, no_address, duplicates }),
    estimated_time: estimated,
    message,
  }
}

/** Links to a job in responses of newer endpoints. */
export const jobLinks = ({ settings: { baseUrl } }: QueueDeps, { id }: Job) => ({
  status_url: `${baseUrl}/v1/jobs/${id}`,
  download_url: downloadUrl(baseUrl, id),
})

/** Throws ApiError if the account has no address for mail. */
export function readNotify(c: Context<Env>, notify: boolean | null | undefined): boolean {
  if (!notify) return false
  if (c.get('caller').account.email !== null) return true
  throw requestError('notice_without_email')
}

/** Options that bulk, batch and file requests share. */
export type ListOptionFields = {
  readonly check_smtp?: boolean | null | undefined
  readonly force_refresh?: boolean | null | undefined
  readonly metadata?: GivenMetadata
  readonly notify?: boolean | null | undefined
  readonly webhook_url?: string | null | undefined
}

/**
 * Reads the options of a list. Throws ApiError, and `webhook_url_rejected` for a URL that events
 * cannot be sent to.
 */
export async function readListOptions(
  c: Context<Env>,
  service: QueueDeps,
  { check_smtp, force_refresh, metadata, notify, webhook_url }: ListOptionFields,
): Promise<SubmitOptions> {
  return {
    checkSmtp: check_smtp ?? DEFAULT_JOB_OPTIONS.checkSmtp,
    forceRefresh: force_refresh ?? DEFAULT_JOB_OPTIONS.forceRefresh,
    metadata: readMetadata(metadata),
    notify: readNotify(c, notify),
    webhook: await readJobWebhook(c, service, webhook_url, ['batch.completed', 'batch.failed']),
  }
}
