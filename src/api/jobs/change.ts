import { cancelJob, deleteJob } from '../../jobs/change-job.ts'
import type { Job } from '../../jobs/job-store.ts'
import { resumeJob } from '../../jobs/resume-job.ts'
import { answerWith } from '../middleware/idempotency.ts'
import { route } from '../route.ts'
import { newRouter } from '../router.ts'
import { json } from '../schemas/answers.ts'
import { CANCELLED_EXAMPLE, JobAnswer, RESUMED_EXAMPLE } from '../schemas/job.ts'
import type { Service } from '../service.ts'
import { presentJob } from './job-view.ts'
import { jobParams, jobServices, loadJob } from './load-job.ts'

/** Routes that cancel, resume and delete a job. */
export function jobChangeRoutes(service: Service) {
  const router = newRouter()

  const cancel = route(service, 'POST /v1/jobs/{id}/cancel', {
    id: 'cancelJob',
    summary: 'Cancel a job',
    description:
      'Stops the job and returns its unused credits. Existing results remain available: download them with `partial=true`. A job that is already cancelled is returned unchanged, so a request can be repeated without an `Idempotency-Key`.',
    scope: 'jobs:write',
    params: jobParams,
    answer: json(JobAnswer, 'The cancelled job', CANCELLED_EXAMPLE),
    errors: ['job_not_cancellable'],
  })
  router.openapi(cancel, async c => {
    const { job } = await cancelJob(service, await loadJob(c, service, c.req.valid('param').id))
    return c.json(presentJob(service, job), 200)
  })

  const resume = route(service, 'POST /v1/jobs/{id}/resume', {
    id: 'resumeJob',
    summary: 'Resume a cancelled or failed job',
    description:
      'Continues where the job stopped. Existing results are kept, and credits for the remaining rows are reserved as at submission. `started_at` is moved forward by the time that the job was stopped. Webhooks receive an event again when the job ends, even if they have received `batch.failed` for it.',
    scope: 'jobs:write',
    idempotent: true,
    params: jobParams,
    answer: json(JobAnswer, 'The resumed job', RESUMED_EXAMPLE),
    errors: ['job_not_resumable', 'quota_exceeded', 'concurrent_jobs_exceeded'],
  })
  router.openapi(resume, async c => {
    const job = await loadJob(c, service, c.req.valid('param').id)
    const { plan } = c.get('caller')
    return answerWith<Job>(
      c,
      service,
      beforeCommit => resumeJob(jobServices(service), { job, plan }, beforeCommit),
      resumed => ({ status: 200, body: presentJob(service, resumed) }),
    )
  })

  const remove = route(service, 'DELETE /v1/jobs/{id}', {
    id: 'deleteJob',
    summary: 'Delete a job',
    description:
      'Deletes its addresses and results, also from the history. Statistics keep their counts. An unfinished job is cancelled first.',
    scope: 'jobs:write',
    params: jobParams,
    answer: { description: 'The job is deleted' },
    status: 204,
  })
  router.openapi(remove, async c => {
    await deleteJob(service, await loadJob(c, service, c.req.valid('param').id))
    return c.body(null, 204)
  })

  return router
}
