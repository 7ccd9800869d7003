import { createRoute, z } from '@hono/zod-openapi'
import { VERDICT_BY_REASON } from '../../engine/verdict/reason.ts'
import { toClass } from '../../engine/verdict/verdict.ts'
import type { Job } from '../../jobs/job-store.ts'
import type { Breakdown as Counted } from '../../jobs/results/breakdown.ts'
import { requireKey } from '../middleware/require-key.ts'
import { newRouter } from '../router.ts'
import { json } from '../schemas/answers.ts'
import { errorResponses, SECURITY } from '../schemas/error.ts'
import { BREAKDOWN_EXAMPLE, Breakdown } from '../schemas/job-results.ts'
import type { Service } from '../service.ts'
import { stateOf } from '../state.ts'
import { loadJob } from './load-job.ts'

/** The results of a job in numbers. */
export function breakdownRoutes(service: Service) {
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
