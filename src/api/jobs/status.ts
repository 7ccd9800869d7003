import { z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import type { ActionPolicy } from '../../engine/verdict/action.ts'
import type { Job } from '../../jobs/job-store.ts'
import { type ActionPolicyDeps, getActionPolicy } from '../action-policy.ts'
import type { ApiDeps } from '../api-deps.ts'
import type { Env } from '../context.ts'
import { newRouter, route } from '../route.ts'
import { json } from '../schemas/answers.ts'
import { JobAnswer, JobStatus, OPEN_JOB_EXAMPLE, STATUS_EXAMPLE } from '../schemas/job.ts'
import { textStream } from '../text-stream.ts'
import { type JobRow, rowTexts } from './job-row.ts'
import { type JobViewDeps, presentJob, presentStatus } from './job-view.ts'
import {
  jobParams,
  type LoadJobDeps,
  loadJob,
  noSuchJob,
  WAIT_S_MAX,
  waitForJobChange,
} from './load-job.ts'
import { presentItem } from './row-view.ts'

export type StatusDeps = Pick<ApiDeps, 'database' | 'guard' | 'log' | 'outlooks'> &
  ActionPolicyDeps &
  JobViewDeps &
  LoadJobDeps

/** Routes that return the status of a job, with and without its results. */
export function statusRoutes(service: StatusDeps) {
  const router = newRouter()

  const status = route(service, 'GET /v1/verify/bulk/status/{id}', {
    id: 'getBulkStatus',
    summary: 'Get the status and results of a list',
    description:
      'Returns the same fields in every state. `data.results` is empty until the job is completed.',
    scope: 'jobs:read',
    params: jobParams,
    query: z.object(statusQuery),
    answer: json(JobStatus, 'The status', STATUS_EXAMPLE),
  })
  router.handle(status, async c => {
    const current = await loadOrWait(c, service, c.req.valid('param').id, c.req.valid('query'))
    const hasResults = current.state === 'completed' || isTrue(c.req.valid('query').partial)
    const outlook = await service.outlooks.get(current)
    const body = presentStatus(current, outlook)
    return withResults(c, service, body, hasResults ? current : null) as never
  })

  const job = route(service, 'GET /v1/jobs/{id}', {
    id: 'getJob',
    summary: 'Get a job',
    description:
      'Returns the status of a job. Add `include=results` to get the results too. `id` can be the ID of any job, including the `verification_id` of a single address.',
    scope: 'jobs:read',
    params: jobParams,
    query: z.object({ ...statusQuery, include }),
    answer: json(JobAnswer, 'The job', OPEN_JOB_EXAMPLE),
  })
  router.handle(job, async c => {
    const query = c.req.valid('query')
    const current = await loadOrWait(c, service, c.req.valid('param').id, query)
    const body = presentJob(service, current, await service.outlooks.get(current))
    if (query.include === undefined) return c.json(body, 200)
    const hasResults = current.state === 'completed' || isTrue(query.partial)
    return withResults(c, service, body, hasResults ? current : null) as never
  })

  return router
}

const statusQuery = {
  wait: z.coerce.number().int().min(0).max(WAIT_S_MAX).default(0).openapi({
    description:
      'Seconds to wait for a change. The response is sent when the status or the progress changes, or after this time.',
  }),
  partial: z.enum(['true', 'false']).optional().openapi({
    description: "Set to true to get the results so far of a job that isn't completed.",
  }),
}

const include = z.literal('results').optional().openapi({ description: 'Additional data.' })

const isTrue = (flag: string | undefined) => flag === 'true'

async function loadOrWait(
  c: Context<Env>,
  service: StatusDeps,
  id: string,
  { wait }: { wait: number },
): Promise<Job> {
  const job = await loadJob(c, service, id)
  if (wait === 0) return job
  const client = c.req.raw.signal
  return (await waitForJobChange(service, job, { waitS: wait, client })) ?? noSuchJob(id)
}

type Body = { readonly data: object }

/**
 * Responds with the results of `job` in `data`, row by row: a list of a million rows needs no
 * memory. If `job` is null, the results are empty.
 */
function withResults(
  c: Context<Env>,
  service: StatusDeps,
  { data, ...body }: Body,
  job: Job | null,
): Response {
  if (job === null) return c.json({ ...body, data: { results: [], ...data } }, 200)
  const head = `${JSON.stringify(body).slice(0, -1)},"data":{"results":[`
  const tail = `],${JSON.stringify(data).slice(1)}}`
  const policy = getActionPolicy(c, service)
  const chunks = resultChunks(service, job, { head, tail, policy })
  return c.body(textStream(c, service, chunks), 200, { 'Content-Type': 'application/json' })
}

async function* resultChunks(
  { database }: StatusDeps,
  job: Job,
  { head, tail, policy }: { head: string; tail: string; policy: ActionPolicy },
): AsyncGenerator<string> {
  let before = head
  const present = (rows: readonly JobRow[]) =>
    rows.map(row => JSON.stringify(presentItem(row, policy)))
  for await (const rows of rowTexts(database, job, {}, { present, columns: null })) {
    yield before + rows.join(',')
    before = ','
  }
  yield before === head ? head + tail : tail
}
