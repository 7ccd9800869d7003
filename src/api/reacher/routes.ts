import { z } from '@hono/zod-openapi'
import type { Context } from 'hono'
import { cleanAddress, parseAddress } from '../../engine/address/address.ts'
import { presentCheck } from '../../formats/vocabulary/reacher.ts'
import { findJobId, JOB_NUMBER_MAX } from '../../jobs/job-number.ts'
import { DEFAULT_JOB_OPTIONS, type Job } from '../../jobs/job-store.ts'
import type { ApiDeps } from '../api-deps.ts'
import type { Env } from '../context.ts'
import { invalidRequest } from '../errors/request-errors.ts'
import { type LoadJobDeps, loadJob } from '../jobs/load-job.ts'
import { type ListLimitDeps, requireDiskSpace } from '../lists/limits.ts'
import { type QueueDeps, queueList, toChunks } from '../lists/queue.ts'
import { BATCH_BODY_MAX, BATCH_VALUES_MAX } from '../lists/routes.ts'
import { REACHER_SECRET } from '../middleware/admission.ts'
import type { GuardRule } from '../middleware/guard.ts'
import { newRouter, type Router } from '../route.ts'
import { type AskDeps, answerOne, SINGLE_BODY_MAX } from '../verify/ask.ts'
import { simulatedError } from '../verify/sandbox.ts'
import { presentProgress } from './present-progress.ts'
import { readCheck, readInput } from './request.ts'
import { answerCsv, answerJson, type ResultDeps } from './results.ts'

type ReacherDeps = Pick<ApiDeps, 'guard' | 'settings'> &
  AskDeps &
  ListLimitDeps &
  LoadJobDeps &
  QueueDeps &
  ResultDeps

/**
 * The HTTP API of Reacher 0.11.7 (`backend/src/http/mod.rs`), for programs that were written for it.
 * It is a second form of our own requests: keys, scopes, limits, credits and lists are the same. It
 * is not part of the OpenAPI document, because its contract is Reacher's. Errors have Reacher's
 * `error` and our other fields.
 */
export function reacherRoutes(service: ReacherDeps): Router {
  const router = newRouter()
  router.get('/version', c => c.json({ version: service.settings.version }))
  for (const version of ['v0', 'v1']) {
    const check = `/${version}/check_email`
    const protect = service.guard({ ...CHECK, target: `POST ${check}` })
    router.post(
      check,
      protect(c => checkEmail(c, service)),
    )
    addListRoutes(router, service, `/${version}/bulk`)
  }
  return router
}

function addListRoutes(router: Router, service: ReacherDeps, path: string): void {
  const submit = {
    ...SUBMIT,
    target: `POST ${path}`,
    beforeBody: service.limitLargeLists,
    afterBody: requireDiskSpace(service),
  }
  router.post(
    path,
    service.guard(submit)(c => submitList(c, service)),
  )
  const progress = { ...READ, target: `GET ${path}/{id}`, schemas: { params: PARAMS } }
  router.get(
    `${path}/:id`,
    service.guard(progress)(async c => c.json(presentProgress(await loadNumbered(c, service)))),
  )
  const results = {
    ...READ,
    target: `GET ${path}/{id}/results`,
    schemas: { params: PARAMS, query: RESULTS_QUERY },
  }
  router.get(
    `${path}/:id/results`,
    service.guard(results)(c => listResults(c, service)),
  )
}

const PARAMS = z.object({ id: z.coerce.number().int().min(1).max(JOB_NUMBER_MAX) })

const RESULTS_QUERY = z.object({
  format: z.enum(['json', 'csv']).default('json'),
  limit: z.coerce.number().int().min(0).optional(),
  offset: z.coerce.number().int().min(0).default(0),
})

/** The handlers validate bodies: fields that Reacher does not know are ignored. */
const CHECK = {
  keyHeader: REACHER_SECRET,
  scope: 'verify:single',
  counts: 'single',
  idempotent: true,
  body: { kind: 'json', bytesMax: SINGLE_BODY_MAX },
  freeBodyMax: SINGLE_BODY_MAX,
  schemas: {},
} as const satisfies Omit<GuardRule, 'target'>

const SUBMIT = {
  keyHeader: REACHER_SECRET,
  scope: 'verify:bulk',
  counts: 'bulk',
  idempotent: true,
  takesList: true,
  body: { kind: 'json', bytesMax: BATCH_BODY_MAX, valuesMax: BATCH_VALUES_MAX, gzip: true },
  schemas: {},
} as const satisfies Omit<GuardRule, 'target'>

/** The body of a GET request has no meaning. */
const READ = {
  keyHeader: REACHER_SECRET,
  scope: 'jobs:read',
  counts: null,
  body: { kind: 'json', bytesMax: 0 },
} as const satisfies Omit<GuardRule, 'target' | 'schemas'>

/** Text that is not an address is a result. */
async function checkEmail(c: Context<Env>, service: ReacherDeps): Promise<Response> {
  const text = readCheck(c.get('json'))
  const { text: email } = cleanAddress(text)
  const address = parseAddress(email)
  const simulated = simulatedError(c, address)
  if (simulated !== null) return simulated
  const { checkSmtp, forceRefresh } = DEFAULT_JOB_OPTIONS
  const input = { email, address, checkSmtp, forceRefresh }
  return answerOne(c, service, input, result => presentCheck(result, text))
}

function submitList(c: Context<Env>, service: ReacherDeps): Promise<Response> {
  const emails = readInput(c.get('json'))
  const listed = {
    type: 'batch' as const,
    name: null,
    options: DEFAULT_JOB_OPTIONS,
    deduplicate: true,
    isNumbered: true,
    rowCount: emails.length,
    rows: toChunks(emails.map(text => ({ text }))),
  }
  return queueList(c, service, listed, ({ number }) => ({ job_id: number }))
}

async function listResults(c: Context<Env>, service: ReacherDeps): Promise<Response> {
  const { format, ...range } = c.req.valid('query' as never) as z.infer<typeof RESULTS_QUERY>
  const job = await loadNumbered(c, service)
  if (job.finished_at === null) {
    throw invalidRequest(`Job ${job.number} is still running, please try again later`)
  }
  return format === 'csv' ? answerCsv(c, service, job, range) : answerJson(c, service, job, range)
}

/** Loads the job whose number is in the path. */
async function loadNumbered(c: Context<Env>, service: ReacherDeps): Promise<Job> {
  const { id: number } = c.req.valid('param' as never) as z.infer<typeof PARAMS>
  const id = await findJobId(service.database, c.get('caller').account.id, number)
  return loadJob(c, service, id ?? String(number))
}
