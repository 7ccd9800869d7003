import { createRoute, z } from '@hono/zod-openapi'
import type { Job } from '../../jobs/job-store.ts'
import { resumeJob } from '../../jobs/resume-job.ts'
import { answerWith, idempotent } from '../middleware/idempotency.ts'
import { requireKey } from '../middleware/require-key.ts'
import { newRouter } from '../router.ts'
import { json } from '../schemas/answers.ts'
import { BODY_FAULTS, errorResponses, REPLAY_FAULTS, SECURITY } from '../schemas/error.ts'
import { IDEMPOTENCY_KEY } from '../schemas/headers.ts'
import { JobAnswer, RESUMED_EXAMPLE } from '../schemas/job.ts'
import type { Service } from '../service.ts'
import { presentJob } from './job-view.ts'
import { jobServices, loadJob } from './load-job.ts'

/** Route that resumes a cancelled or failed job. */
export function jobResumeRoutes(service: Service) {
  const rule = { scope: 'jobs:write', counts: null, bodyMax: BODY_MAX } as const
  const resume = createRoute({
    ...{ method: 'post', path: '/v1/jobs/{id}/resume', operationId: 'resumeJob' },
    summary: 'Resume a cancelled or failed job',
    description:
      'Continues where the job stopped. Existing results are kept, and credits for the remaining rows are reserved as at submission. `started_at` is moved forward by the time that the job was stopped. Webhooks receive an event again when the job ends, even if they have received `batch.failed` for it.',
    tags: ['Jobs'],
    security: SECURITY,
    parameters: [IDEMPOTENCY_KEY],
    middleware: [...requireKey(service, rule), idempotent(service)],
    request: { params },
    responses: {
      200: json(JobAnswer, 'The resumed job', RESUMED_EXAMPLE),
      ...errorResponses(
        ...(['invalid_request', 'not_found', 'job_not_resumable', 'quota_exceeded'] as const),
        'concurrent_jobs_exceeded',
        ...BODY_FAULTS,
        ...REPLAY_FAULTS,
      ),
    },
  } as const)
  return newRouter().openapi(resume, async c => {
    const job = await loadJob(c, service, c.req.valid('param').id)
    const { plan } = c.get('caller')
    return (await answerWith<Job>(
      c,
      service,
      beforeCommit => resumeJob(jobServices(service), { job, plan }, beforeCommit),
      resumed => ({ status: 200, body: presentJob(service, resumed) }),
    )) as never
  })
}

/** This route needs no body, but accepts an empty JSON object. */
const BODY_MAX = 1_024

const params = z.object({ id: z.string().max(100).openapi({ example: 'job_xyz789' }) })
