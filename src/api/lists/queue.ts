import type { Context } from 'hono'
import type { Row } from '../../jobs/import/load-job.ts'
import { DEFAULT_JOB_OPTIONS, type Job, type JobOptions } from '../../jobs/job-store.ts'
import { type JobInput, submitJob } from '../../jobs/submit-job.ts'
import { downloadUrl } from '../../webhooks/event.ts'
import type { Env } from '../context.ts'
import { ApiError } from '../errors/api-error.ts'
import { jobServices } from '../jobs/load-job.ts'
import { answerWith } from '../middleware/idempotency.ts'
import type { Service } from '../service.ts'
import { estimatedTime } from '../verify/estimate.ts'

/** What a path knows of the list that it was given. */
export type Listed = Pick<
  JobInput,
  'type' | 'name' | 'deduplicate' | 'source' | 'options' | 'rowCount' | 'rows'
>

/** Makes a job of a list: it is durable, with its credits and its answer, before that answer is sent. */
export function queueList(
  c: Context<Env>,
  service: Service,
  listed: Listed,
  present: (job: Job, estimated: string) => object,
): Promise<Response> {
  const { account, key, plan } = c.get('caller')
  const sandbox = c.get('sandbox')
  const { checkSmtp } = listed.options
  let estimated = ''
  const input: JobInput = {
    ...{ ...listed, accountId: account.id, keyId: key.id, plan, sandbox },
    async afterLoad({ jobId, domains }) {
      estimated = await estimatedTime(service, { jobId, domains, sandbox, checkSmtp })
    },
  }
  return answerWith<Job>(
    c,
    service,
    beforeCommit => submitJob(jobServices(service), input, beforeCommit),
    job => ({ status: 200, body: present(job, estimated) }),
  )
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
export const linksOf = ({ settings: { baseUrl } }: Service, { id }: Job) => ({
  status_url: `${baseUrl}/v1/jobs/${id}`,
  download_url: downloadUrl(baseUrl, id),
})

/** What bulk, batch and file alike say of how a list is asked. */
export type ListOptionFields = {
  readonly check_smtp?: boolean | null | undefined
  readonly force_refresh?: boolean | null | undefined
  readonly webhook_url?: unknown
}

/** How a list is asked. Throws ApiError for a `webhook_url`: ignored, it would leave its caller waiting. */
export function readListOptions({
  check_smtp,
  force_refresh,
  webhook_url,
}: ListOptionFields): JobOptions {
  if (webhook_url !== undefined && webhook_url !== null && webhook_url !== '') {
    throw new ApiError(
      'invalid_request',
      'webhook_url is not taken with a list. Register the endpoint once with POST /v1/webhooks, for the event batch.completed.',
    )
  }
  return {
    checkSmtp: check_smtp ?? DEFAULT_JOB_OPTIONS.checkSmtp,
    forceRefresh: force_refresh ?? DEFAULT_JOB_OPTIONS.forceRefresh,
  }
}
