import type { Context } from 'hono'
import { accountJob } from '../../store/job/account-jobs.ts'
import type { Job } from '../../store/job/jobs.ts'
import type { Env } from '../context.ts'
import { ApiError } from '../error/api-error.ts'
import type { Service } from '../service.ts'

/** The job of a path; whoever asks for another account's hears that there is none. */
export async function foundJob(c: Context<Env>, { database }: Service, id: string): Promise<Job> {
  return (await accountJob(database, c.get('caller').account.id, id)) ?? noSuchJob()
}

export function noSuchJob(): never {
  throw new ApiError('not_found', 'There is no such job')
}
