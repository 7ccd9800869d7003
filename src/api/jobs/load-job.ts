import { z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { getJob } from '../../jobs/change-job.ts'
import type { Job } from '../../jobs/job-store.ts'
import { OperationError } from '../../platform/operation-error.ts'
import type { Env } from '../context.ts'
import type { Service } from '../service.ts'
import { getState } from '../state.ts'

/** Path parameters of a job. */
export const jobParams = z.object({
  id: z.string().max(100).openapi({ description: 'ID of the job.', example: 'job_xyz789' }),
})

/**
 * Loads the job of a path parameter. A job of another account is reported as missing, and a live
 * one for a test key.
 */
export async function loadJob(c: Context<Env>, service: Service, id: string): Promise<Job> {
  const { account, key } = c.get('caller')
  const job = await getJob(service, { jobId: id, accountId: account.id })
  return key.isTest && job.sandbox === 0 ? noSuchJob(id) : job
}

export function noSuchJob(id: string): never {
  throw new OperationError('job_not_found', { id })
}

/** Dependencies of the use cases of jobs, with metrics to count refusals by plan limits. */
export const jobServices = (service: Service) => ({
  ...service,
  metrics: getState(service).metrics,
})
