import { z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { type Action, decideCase } from '../../engine/verdict/action.ts'
import { getComplaintRate } from '../../feedback/feedback-counts.ts'
import { presentBounces, presentProjection } from '../../feedback/present-projection.ts'
import { projectBounces, projectList } from '../../feedback/projection.ts'
import { cancelJob, deleteJob, finishJob } from '../../jobs/change-job.ts'
import { accountJobs } from '../../jobs/job-list.ts'
import type { Job } from '../../jobs/job-store.ts'
import {
  METADATA_KEY_LENGTH_MAX,
  METADATA_KEYS_MAX,
  METADATA_VALUE_LENGTH_MAX,
} from '../../jobs/metadata.ts'
import type { Breakdown as Counted } from '../../jobs/results/breakdown.ts'
import { resumeJob } from '../../jobs/resume-job.ts'
import { yieldToEventLoop } from '../../platform/clock.ts'
import { getActionPolicy } from '../action-policy.ts'
import type { ApiDeps } from '../api-deps.ts'
import type { Env } from '../context.ts'
import { answerWith, type IdempotencyDeps } from '../middleware/idempotency.ts'
import { pageQuery, parseCursor, toPage, toPageBody } from '../query.ts'
import { withOrigin } from '../request-context.ts'
import { newRouter, route } from '../route.ts'
import { json } from '../schemas/answers.ts'
import { CANCELLED_EXAMPLE, JOB_STATES, JobAnswer, JobPage } from '../schemas/job.ts'
import { BREAKDOWN_EXAMPLE, Breakdown, BreakdownQuery } from '../schemas/job-results.ts'
import { type DownloadRouteDeps, downloadRoutes } from './download.ts'
import { type DownloadLinkDeps, downloadLinkRoutes } from './download-link.ts'
import { type JobEventDeps, jobEventRoutes } from './events.ts'
import { type JobViewDeps, presentJob } from './job-view.ts'
import { jobParams, type LoadJobDeps, loadJob } from './load-job.ts'
import { type OutlookDeps, queuedOutlook } from './outlook.ts'
import { type ResultDeps, resultRoutes } from './results.ts'
import { type ReverifyDeps, reverifyRoutes } from './reverify.ts'
import { type StatusDeps, statusRoutes } from './status.ts'

type JobDeps = Pick<ApiDeps, 'breakdowns' | 'database' | 'feedback' | 'guard' | 'outlooks'> &
  IdempotencyDeps &
  DownloadRouteDeps &
  DownloadLinkDeps &
  JobEventDeps &
  JobViewDeps &
  LoadJobDeps &
  OutlookDeps &
  ResultDeps &
  ReverifyDeps &
  StatusDeps

/** Routes of submitted lists. */
export function jobRoutes(service: JobDeps) {
  const router = newRouter()
  router.include(statusRoutes(service))
  router.include(jobListRoutes(service))
  router.include(jobEventRoutes(service))
  router.include(jobChangeRoutes(service))
  router.include(reverifyRoutes(service))
  router.include(resultRoutes(service))
  router.include(breakdownRoutes(service))
  router.include(downloadRoutes(service))
  router.include(downloadLinkRoutes(service))
  return router
}

const JobListQuery = z.object({
  ...pageQuery,
  status: z.enum(JOB_STATES).optional().openapi({ description: 'Only jobs with this status.' }),
  include_sandbox: z
    .enum(['true', 'false'])
    .optional()
    .openapi({ description: 'Whether simulated jobs are listed too. Default: false.' }),
  metadata: z
    .record(z.string().max(METADATA_KEY_LENGTH_MAX), z.string().max(METADATA_VALUE_LENGTH_MAX))
    .refine(pairs => Object.keys(pairs).length <= METADATA_KEYS_MAX, {
      error: `must have at most ${METADATA_KEYS_MAX} pairs`,
    })
    .optional()
    .openapi({
      maxProperties: METADATA_KEYS_MAX,
      param: { name: 'metadata', in: 'query', style: 'deepObject', explode: true },
      description: 'Only jobs with this metadata, such as `metadata[customer]=42`.',
    }),
})

function jobListRoutes(service: JobDeps) {
  const list = route(service, 'GET /v1/jobs', {
    id: 'listJobs',
    summary: 'List jobs, newest first',
    description:
      'Returns live jobs. With `include_sandbox=true`, returns live and simulated jobs; with `X-EV-Sandbox: true`, only simulated ones.',
    scope: 'jobs:read',
    query: JobListQuery,
    answer: json(JobPage, 'One page of jobs', { data: { next_cursor: null, has_more: false } }),
  })
  return newRouter().handle(list, async c => {
    const { limit, cursor, status, include_sandbox, metadata = {} } = c.req.valid('query')
    const isSandbox = c.get('sandbox')
    const found = await accountJobs(service.database, {
      accountId: c.get('caller').account.id,
      after: parseCursor(cursor),
      max: limit + 1,
      sandbox: include_sandbox === 'true' && !isSandbox ? undefined : isSandbox,
      metadata,
      ...(status === undefined ? {} : { state: status }),
    })
    const { rows, next } = toPage(found, limit)
    const items: ListedJob[] = []
    for (const job of rows) {
      const outlook = await service.outlooks.get(job)
      const { success: _, ...listed } = presentJob(service, job, outlook)
      items.push(listed)
      // The outlook of a running list takes some reads, which block the event loop on SQLite.
      if (outlook !== null) await yieldToEventLoop()
    }
    return c.json(toPageBody(items, next), 200)
  })
}

type ListedJob = Omit<ReturnType<typeof presentJob>, 'success'>

function breakdownRoutes(service: JobDeps) {
  const breakdown = route(service, 'GET /v1/jobs/{id}/breakdown', {
    id: 'getBreakdown',
    summary:
      'Count the results of a job by class, action, reason and operator, and project its bounces',
    description:
      'Returns the counts, most frequent first, with at most 20 operators. `projection` has the bounce rate to expect of mail to all addresses, to those with the actions `send` and `send_with_care`, and to those with the actions in `action`. The counts of a running job can be one second old, or up to two minutes for a list of a million rows.',
    scope: 'jobs:read',
    params: jobParams,
    query: BreakdownQuery,
    answer: json(Breakdown, 'The counts', BREAKDOWN_EXAMPLE),
  })
  return newRouter().handle(breakdown, async c => {
    const { id } = c.req.valid('param')
    const { action } = c.req.valid('query')
    const counted = await service.breakdowns.get(await loadJob(c, service, id))
    // Reloads the job: the count of a job that was deleted in the meantime is incomplete.
    const data = {
      ...presentBreakdown(await loadJob(c, service, id), counted),
      ...(await projectJob(c, service, counted, action)),
    }
    return c.json({ success: true as const, data }, 200)
  })
}

/** The rows by action, and the projected bounces, by the policy and the reports of the account. */
async function projectJob(
  c: Context<Env>,
  service: JobDeps,
  { groups }: Counted,
  actions: readonly Action[] | undefined,
) {
  const { id } = c.get('caller').account
  const policy = getActionPolicy(c, service)
  const model = await service.feedback.getBounceModel(id)
  const complaintRate = await getComplaintRate(service.database, id)
  const projected = presentProjection(projectList(groups, { policy, model }), complaintRate)
  if (actions === undefined) return projected
  const selected = groups.filter(({ which }) => actions.includes(decideCase(which, policy).action))
  return {
    ...projected,
    projection: {
      ...projected.projection,
      selected: presentBounces(projectBounces(selected, model)),
    },
  }
}

const presentBreakdown = (
  { total }: Job,
  { done, classes, reasons, operators, operatorsLeft }: Counted,
) => ({
  total,
  done,
  classes,
  reasons: reasons.map(one => ({ ...one })),
  operators: operators.map(one => ({ ...one })),
  operators_left: operatorsLeft,
})

/** Routes that cancel, finish, resume and delete a job. */
function jobChangeRoutes(service: JobDeps) {
  const router = newRouter()

  const cancel = route(service, 'POST /v1/jobs/{id}/cancel', {
    id: 'cancelJob',
    summary: 'Cancel a job',
    description:
      'Stops the job and returns its unused credits. You can still download the results so far, with `partial=true`. If the job is already cancelled, it is returned unchanged, so you can repeat the request without an `Idempotency-Key`.',
    scope: 'jobs:write',
    params: jobParams,
    answer: json(JobAnswer, 'The cancelled job', CANCELLED_EXAMPLE),
    errors: ['job_not_cancellable'],
  })
  router.handle(cancel, async c => {
    const { job } = await cancelJob(service, await loadJob(c, service, c.req.valid('param').id))
    return c.json(presentJob(service, job, null), 200)
  })

  const finish = route(service, 'POST /v1/jobs/{id}/finish', {
    id: 'finishJob',
    summary: 'Finish a job now',
    description:
      'Rows that wait for a retry, a pause or a block get the result that is known so far: for most of them it is unknown, which is free. Rows in flight end normally. The job is then completed as usual, with its events, within seconds or a few minutes. A job that is completed or already being finished is returned unchanged, so a request can be repeated without an `Idempotency-Key`.',
    scope: 'jobs:write',
    params: jobParams,
    answer: json(JobAnswer, 'The job', {
      finish_requested_at: '2026-03-21T10:31:00.000Z',
    }),
    errors: ['job_not_finishable'],
  })
  router.handle(finish, async c => {
    const found = await loadJob(c, service, c.req.valid('param').id)
    const { job } = await finishJob(withOrigin(c, service), found)
    return c.json(presentJob(service, job, await service.outlooks.get(job)), 200)
  })

  const resume = route(service, 'POST /v1/jobs/{id}/resume', {
    id: 'resumeJob',
    summary: 'Resume a cancelled or failed job',
    description:
      'Continues where the job stopped. Rows with a result keep it, and credits for the others are reserved again. `started_at` moves forward by the time for which the job was stopped. When the job ends, webhooks receive an event, even if they have already received `batch.failed`.',
    scope: 'jobs:write',
    idempotent: true,
    params: jobParams,
    answer: json(JobAnswer, 'The resumed job'),
    errors: ['job_not_resumable', 'quota_exceeded', 'concurrent_jobs_exceeded'],
  })
  router.handle(resume, async c => {
    const job = await loadJob(c, service, c.req.valid('param').id)
    const { plan } = c.get('caller')
    return answerWith<Job>(
      c,
      service,
      beforeCommit => resumeJob(service, { job, plan }, beforeCommit),
      resumed => ({
        status: 200,
        body: presentJob(service, resumed, queuedOutlook(service, resumed)),
      }),
    )
  })

  const remove = route(service, 'DELETE /v1/jobs/{id}', {
    id: 'deleteJob',
    summary: 'Delete a job',
    description:
      'Deletes the job with its addresses and results, including those in the history. Statistics keep their counts. A job that is still running is cancelled first.',
    scope: 'jobs:write',
    params: jobParams,
    answer: { description: 'The job is deleted' },
    status: 204,
  })
  router.handle(remove, async c => {
    await deleteJob(service, await loadJob(c, service, c.req.valid('param').id))
    return c.body(null, 204)
  })

  return router
}
