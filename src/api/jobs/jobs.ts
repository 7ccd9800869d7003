import { createRoute, z } from '@hono/zod-openapi'
import { VERDICT_BY_REASON } from '../../engine/verdict/reason.ts'
import { toClass } from '../../engine/verdict/verdict.ts'
import { accountJobs } from '../../jobs/job-list.ts'
import type { Job } from '../../jobs/job-store.ts'
import type { Breakdown as Counted } from '../../jobs/results/breakdown.ts'
import { pageOf, pageQuery, positionOf } from '../cursor.ts'
import { requireKey } from '../middleware/require-key.ts'
import { newRouter } from '../router.ts'
import { json } from '../schemas/answers.ts'
import { errorResponses, SECURITY } from '../schemas/error.ts'
import { JOB_STATES, JobPage, PAGE_EXAMPLE } from '../schemas/job.ts'
import { BREAKDOWN_EXAMPLE, Breakdown } from '../schemas/job-results.ts'
import type { Service } from '../service.ts'
import { stateOf } from '../state.ts'
import { jobChangeRoutes } from './change.ts'
import { downloadRoutes } from './download.ts'
import { jobEventRoutes } from './events.ts'
import { presentJob } from './job-view.ts'
import { loadJob } from './load-job.ts'
import { resultRoutes } from './results.ts'
import { jobResumeRoutes } from './resume.ts'
import { statusRoutes } from './status.ts'

/** Everything about lists that were submitted. */
export function jobRoutes(service: Service) {
  const router = newRouter()
  router.route('/', statusRoutes(service))
  router.route('/', jobListRoutes(service))
  router.route('/', jobEventRoutes(service))
  router.route('/', jobChangeRoutes(service))
  router.route('/', jobResumeRoutes(service))
  router.route('/', resultRoutes(service))
  router.route('/', breakdownRoutes(service))
  router.route('/', downloadRoutes(service))
  return router
}

/** The lists of an account. */
function jobListRoutes(service: Service) {
  const list = createRoute({
    ...{ method: 'get', path: '/v1/jobs', operationId: 'listJobs' },
    summary: 'The lists of the account, the newest first',
    description: 'With `X-EV-Sandbox: true` the simulated ones, else the others.',
    tags: ['Jobs'],
    security: SECURITY,
    middleware: requireKey(service, { scope: 'jobs:read', counts: null, bodyMax: 0 }),
    request: { query: z.object({ ...pageQuery, status: z.enum(JOB_STATES).optional() }) },
    responses: {
      200: json(JobPage, 'One page of them', PAGE_EXAMPLE),
      ...errorResponses('invalid_request'),
    },
  } as const)
  return newRouter().openapi(list, async c => {
    const { limit, cursor, status } = c.req.valid('query')
    const found = await accountJobs(service.database, {
      accountId: c.get('caller').account.id,
      after: positionOf(cursor),
      max: limit + 1,
      sandbox: c.get('sandbox'),
      ...(status === undefined ? {} : { state: status }),
    })
    const { rows, next } = pageOf(found, limit)
    const items = rows.map(job => {
      const { success: _, ...listed } = presentJob(service, job)
      return listed
    })
    return c.json(
      { success: true as const, data: { items, next_cursor: next, has_more: next !== null } },
      200,
    )
  })
}

/** The results of a job in numbers. */
function breakdownRoutes(service: Service) {
  const breakdown = createRoute({
    ...{ method: 'get', path: '/v1/jobs/{id}/breakdown', operationId: 'getBreakdown' },
    summary: 'The results of a job by class, reason and mail operator',
    description:
      'The most frequent first; of operators the first twenty. Counting a million rows takes some seconds; the counts of a job that has ended are remembered, those of one that is under way are up to five seconds old.',
    tags: ['Jobs'],
    security: SECURITY,
    middleware: requireKey(service, { scope: 'jobs:read', counts: null, bodyMax: 0 }),
    request: { params },
    responses: {
      200: json(Breakdown, 'The counts', BREAKDOWN_EXAMPLE),
      ...errorResponses('invalid_request', 'not_found'),
    },
  } as const)
  return newRouter().openapi(breakdown, async c => {
    const { id } = c.req.valid('param')
    const counted = await stateOf(service).breakdowns.of(await loadJob(c, service, id))
    // One that was deleted meanwhile was counted in part.
    const data = present(await loadJob(c, service, id), counted)
    return c.json({ success: true as const, data }, 200)
  })
}

const params = z.object({ id: z.string().max(100).openapi({ example: 'job_xyz789' }) })

const present = (
  { total }: Job,
  { done, classes, reasons, operators, operatorsLeft }: Counted,
) => ({
  ...{ total, done, classes },
  reasons: reasons.map(({ reason, count }) => {
    return { reason, class: toClass(VERDICT_BY_REASON[reason]), count }
  }),
  operators: operators.map(one => ({ ...one })),
  operators_left: operatorsLeft,
})
