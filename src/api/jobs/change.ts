import { createRoute, z } from '@hono/zod-openapi'
import { cancelJob, deleteJob } from '../../jobs/change-job.ts'
import { requireKey } from '../middleware/require-key.ts'
import { newRouter } from '../router.ts'
import { json } from '../schemas/answers.ts'
import { BODY_FAULTS, errorResponses, SECURITY } from '../schemas/error.ts'
import { CANCELLED_EXAMPLE, JobAnswer } from '../schemas/job.ts'
import type { Service } from '../service.ts'
import { presentJob } from './job-view.ts'
import { loadJob } from './load-job.ts'

/** Routes that cancel and delete a job. */
export function jobChangeRoutes(service: Service) {
  const middleware = requireKey(service, { scope: 'jobs:write', counts: null, bodyMax: BODY_MAX })
  const cancel = createRoute({
    ...{ method: 'post', path: '/v1/jobs/{id}/cancel', operationId: 'cancelJob' },
    summary: 'Cancel a job',
    description:
      'Stops the job and returns its unused credits. Existing results remain available: download them with `partial=true`. A job that is already cancelled is returned unchanged.',
    tags: ['Jobs'],
    security: SECURITY,
    middleware,
    request: { params },
    responses: {
      200: json(JobAnswer, 'The cancelled job', CANCELLED_EXAMPLE),
      ...errorResponses('invalid_request', 'not_found', 'job_not_cancellable', ...BODY_FAULTS),
    },
  } as const)
  const remove = createRoute({
    ...{ method: 'delete', path: '/v1/jobs/{id}', operationId: 'deleteJob' },
    summary: 'Delete a job',
    description:
      'Deletes its addresses and results, also from the history. Statistics keep their counts. An unfinished job is cancelled first.',
    tags: ['Jobs'],
    security: SECURITY,
    middleware,
    request: { params },
    responses: {
      204: { description: 'The job is deleted' },
      ...errorResponses('invalid_request', 'not_found', ...BODY_FAULTS),
    },
  } as const)
  return newRouter()
    .openapi(cancel, async c => {
      const { job } = await cancelJob(service, await loadJob(c, service, c.req.valid('param').id))
      return c.json(presentJob(service, job), 200)
    })
    .openapi(remove, async c => {
      await deleteJob(service, await loadJob(c, service, c.req.valid('param').id))
      return c.body(null, 204)
    })
}

/** These routes need no body, but accept an empty JSON object. */
const BODY_MAX = 1_024

const params = z.object({ id: z.string().max(100).openapi({ example: 'job_xyz789' }) })
