import { createRoute, z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import type { Trx } from '../../store/database.ts'
import type { Job } from '../../store/job/jobs.ts'
import { creditsToResume, isResumable, resumeJob } from '../../work/resume.ts'
import type { Env } from '../context.ts'
import { ApiError } from '../error/api-error.ts'
import { commit } from '../guard/commit.ts'
import { guard } from '../guard/guard.ts'
import { idempotent } from '../guard/idempotent.ts'
import { newRouter } from '../router.ts'
import { json } from '../schema/answers.ts'
import { BODY_FAULTS, errorResponses, REPLAY_FAULTS, SECURITY } from '../schema/error.ts'
import { JobAnswer, RESUMED_EXAMPLE } from '../schema/job.ts'
import type { Service } from '../service.ts'
import { quotaExceeded } from '../verify/credits.ts'
import { checkRoom } from '../verify/list/room.ts'
import { foundJob } from './found-job.ts'
import { presentJob } from './present-job.ts'

/** Going on with a job that ended early. */
export function jobResumeRoutes(service: Service) {
  const rule = { scope: 'jobs:write', counts: null, bodyMax: BODY_MAX } as const
  const resume = createRoute({
    ...{ method: 'post', path: '/v1/jobs/{id}/resume', operationId: 'resumeJob' },
    summary: 'Go on with a job that was cancelled or failed',
    description:
      'It goes on where it stopped: what has a result keeps it, and credits for the rest are set aside as at its submission. `started_at` leaves out the time that it stood still. Its end is told by webhooks anew, also where they were told that it failed.',
    tags: ['Jobs'],
    security: SECURITY,
    middleware: [...guard(service, rule), idempotent(service)],
    request: { params },
    responses: {
      200: json(JobAnswer, 'The job, which goes on', RESUMED_EXAMPLE),
      ...errorResponses(
        ...(['invalid_request', 'not_found', 'job_not_resumable', 'quota_exceeded'] as const),
        'concurrent_jobs_exceeded',
        ...BODY_FAULTS,
        ...REPLAY_FAULTS,
      ),
    },
  } as const)
  return newRouter().openapi(resume, async c => {
    const job = await foundJob(c, service, c.req.valid('param').id)
    if (!isResumable(job)) throw notResumable(job)
    const { account, plan } = c.get('caller')
    const needed = await creditsToResume(service.database, job, plan.creditsPerDay)
    try {
      const response = await commit(c, service, async trx => ({
        status: 200,
        body: presentJob(service, await resumeIn(c, service, trx, { job, needed })),
      }))
      service.worker.take(job.id)
      return response as never
    } catch (error) {
      // What is told of it would be undone with the transaction that it ended.
      if (error instanceof ApiError && error.code === 'quota_exceeded') {
        await service.books.refused(account.id, plan)
      }
      throw error
    }
  })
}

/** This path takes no body; a client may send an empty object all the same. */
const BODY_MAX = 1_024

const params = z.object({ id: z.string().max(100).openapi({ example: 'job_xyz789' }) })

async function resumeIn(
  c: Context<Env>,
  service: Service,
  trx: Trx,
  { job, needed }: { readonly job: Job; readonly needed: number | null },
): Promise<Job> {
  const { plan } = c.get('caller')
  const now = service.clock.now()
  const { creditsPerDay } = plan
  const resumed = await resumeJob(trx, job, { now, needed, creditsPerDay })
  if (resumed === null) throw notResumable(await foundJob(c, service, job.id))
  if ('job' in resumed) {
    // Its rows are stored already.
    const openLists = job.type === 'single' ? 0 : 1
    await checkRoom(c, service, { openLists, rows: 0 }, trx)
    return resumed.job
  }
  throw quotaExceeded(plan, now, { needed, left: resumed.creditsLeft })
}

/** One that somebody else has just resumed may have ended again. */
const notResumable = (job: Job) =>
  new ApiError(
    'job_not_resumable',
    isResumable(job)
      ? 'The job was resumed meanwhile: ask how it stands'
      : `The job is ${job.state}: only one that is cancelled or failed can be resumed`,
  )
