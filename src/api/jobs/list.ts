import { createRoute, z } from '@hono/zod-openapi'
import { accountJobs } from '../../jobs/job-list.ts'
import { pageOf, pageQuery, positionOf } from '../cursor.ts'
import { requireKey } from '../middleware/require-key.ts'
import { newRouter } from '../router.ts'
import { json } from '../schemas/answers.ts'
import { errorResponses, SECURITY } from '../schemas/error.ts'
import { JOB_STATES, JobPage, PAGE_EXAMPLE } from '../schemas/job.ts'
import type { Service } from '../service.ts'
import { presentJob } from './job-view.ts'

/** The lists of an account. */
export function jobListRoutes(service: Service) {
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
