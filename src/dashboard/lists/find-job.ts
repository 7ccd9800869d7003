import type { Context } from 'hono'
import type { Job } from '../../client/types.ts'
import type { Env } from '../deps.ts'

/** Returns the path of a list in the API. */
export const jobPath = (id = ''): string => `/v1/jobs/${encodeURIComponent(id)}`

/** Returns the path of the page of the list that a request names. */
export const listPath = (c: Context<Env>): string =>
  `/lists/${encodeURIComponent(c.req.param('id') ?? '')}`

/** Returns the list that a request names. Throws ApiProblem. */
export const findJob = (c: Context<Env>): Promise<Job> =>
  c.get('api').ask<Job>(jobPath(c.req.param('id')))
