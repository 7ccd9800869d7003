import { z } from '@hono/zod-openapi'
import { accountJobs } from '../../jobs/job-list.ts'
import type { Job, Metadata } from '../../jobs/job-store.ts'
import type { Breakdown as Counted } from '../../jobs/results/breakdown.ts'
import { pageQuery, parseCursor, toPage } from '../cursor.ts'
import { route } from '../route.ts'
import { newRouter } from '../router.ts'
import { json } from '../schemas/answers.ts'
import { JOB_STATES, JobPage, PAGE_EXAMPLE } from '../schemas/job.ts'
import { BREAKDOWN_EXAMPLE, Breakdown } from '../schemas/job-results.ts'
import type { Service } from '../service.ts'
import { getState } from '../state.ts'
import { jobChangeRoutes } from './change.ts'
import { downloadRoutes } from './download.ts'
import { downloadLinkRoutes } from './download-link.ts'
import { jobEventRoutes } from './events.ts'
import { presentJob } from './job-view.ts'
import { jobParams, loadJob } from './load-job.ts'
import { resultRoutes } from './results.ts'
import { reverifyRoutes } from './reverify.ts'
import { statusRoutes } from './status.ts'

/** Routes of submitted lists. */
export function jobRoutes(service: Service) {
  const router = newRouter()
  router.route('/', statusRoutes(service))
  router.route('/', jobListRoutes(service))
  router.route('/', jobEventRoutes(service))
  router.route('/', jobChangeRoutes(service))
  router.route('/', reverifyRoutes(service))
  router.route('/', resultRoutes(service))
  router.route('/', breakdownRoutes(service))
  router.route('/', downloadRoutes(service))
  router.route('/', downloadLinkRoutes(service))
  return router
}

function jobListRoutes(service: Service) {
  const list = route(service, 'GET /v1/jobs', {
    id: 'listJobs',
    summary: 'List jobs, newest first',
    description: 'With `X-EV-Sandbox: true`, lists simulated jobs, otherwise live ones.',
    scope: 'jobs:read',
    query: z.object({
      ...pageQuery,
      status: z.enum(JOB_STATES).optional().openapi({ description: 'Only jobs with this status.' }),
      metadata: z
        .record(z.string(), z.string())
        .optional()
        .openapi({
          param: { name: 'metadata', in: 'query', style: 'deepObject', explode: true },
          description: 'Only jobs with these pairs in their metadata: `metadata[customer]=42`.',
        }),
    }),
    answer: json(JobPage, 'One page of jobs', PAGE_EXAMPLE),
  })
  return newRouter().openapi(list, async c => {
    const { limit, cursor, status } = c.req.valid('query')
    const found = await accountJobs(service.database, {
      accountId: c.get('caller').account.id,
      after: parseCursor(cursor),
      max: limit + 1,
      sandbox: c.get('sandbox'),
      metadata: readMetadataFilter(c.req.query()),
      ...(status === undefined ? {} : { state: status }),
    })
    const { rows, next } = toPage(found, limit)
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

/** Reads the parameters `metadata[key]=value` of a query. */
const readMetadataFilter = (query: Readonly<Record<string, string>>): Metadata =>
  Object.fromEntries(
    Object.entries(query).flatMap(([name, value]) => {
      const key = /^metadata\[(.+)\]$/.exec(name)?.[1]
      return key === undefined ? [] : [[key, value]]
    }),
  )

function breakdownRoutes(service: Service) {
  const breakdown = route(service, 'GET /v1/jobs/{id}/breakdown', {
    id: 'getBreakdown',
    summary: 'Count the results of a job by class, reason and mail operator',
    description:
      'Most frequent first; at most 20 operators. Counting a million rows takes some seconds. The counts of a finished job are cached; those of a running job are up to five seconds old, in a list of a million rows up to two minutes.',
    scope: 'jobs:read',
    params: jobParams,
    answer: json(Breakdown, 'The counts', BREAKDOWN_EXAMPLE),
  })
  return newRouter().openapi(breakdown, async c => {
    const { id } = c.req.valid('param')
    const counted = await getState(service).breakdowns.get(await loadJob(c, service, id))
    // Reloads the job: the count of a job that was deleted meanwhile is incomplete.
    const data = present(await loadJob(c, service, id), counted)
    return c.json({ success: true as const, data }, 200)
  })
}

const present = (
  { total }: Job,
  { done, classes, reasons, operators, operatorsLeft }: Counted,
) => ({
  ...{ total, done, classes },
  reasons: reasons.map(one => ({ ...one })),
  operators: operators.map(one => ({ ...one })),
  operators_left: operatorsLeft,
})
