import { createHash, timingSafeEqual } from 'node:crypto'
import { createRoute, z } from '@hono/zod-openapi'
import { Hono, type MiddlewareHandler } from 'hono'
import { ping } from '../maintenance/inspect.ts'
import { errorMessage } from '../platform/error.ts'
import { writeLog } from '../platform/log.ts'
import type { Env } from './context.ts'
import { answerError } from './errors/errors.ts'
import { requestError } from './errors/request-errors.ts'
import { inTime, type Metrics } from './metrics.ts'
import { requestContext } from './request-context.ts'
import { newRouter } from './route.ts'
import { json } from './schemas/answers.ts'
import { ANY_OPERATION, errorResponses } from './schemas/error.ts'
import { responseHeaders } from './schemas/headers.ts'
import type { MonitoringDeps } from './service.ts'
import { API_LOG } from './telemetry.ts'

/** Serves health and metrics on a separate port. */
export function monitoringApp(deps: MonitoringDeps, metrics: Metrics): Hono<Env> {
  const { log } = deps
  const app = new Hono<Env>()
  app.use(requestContext(deps, metrics))
  app.onError((error, c) => answerError(c, log, error))
  app.notFound(c => answerError(c, log, requestError('path_unknown', { remedy: PATHS })))
  app.route('/', healthRoutes(deps))
  return app.route('/', metricsRoutes(deps, metrics))
}

const PATHS = 'Available paths: /livez, /readyz, /health and /metrics.'

/** Serves metrics to clients on this machine or with the token. */
export function metricsRoutes(deps: MonitoringDeps, metrics: Metrics) {
  return newRouter().get('/metrics', monitoringOnly(deps), async c =>
    c.body(await metrics.text(), 200, { 'Content-Type': metrics.contentType }),
  )
}

function monitoringOnly({ settings }: MonitoringDeps): MiddlewareHandler<Env> {
  const token = settings.metricsToken
  return async (c, next) => {
    const sent = /^Bearer +(\S+) *$/i.exec(c.req.header('Authorization') ?? '')?.[1]
    if (token !== null && sent !== undefined) {
      if (!isEqual(sent, token)) throw requestError('metrics_token_invalid')
      return next()
    }
    if (c.get('isLocal')) return next()
    throw requestError('metrics_not_allowed')
  }
}

/** Digests have equal lengths, so that timing reveals nothing about the length of the token. */
const isEqual = (one: string, other: string) => timingSafeEqual(sha256(one), sha256(other))

const sha256 = (text: string) => createHash('sha256').update(text).digest()

/** Routes for monitoring: liveness, readiness and health. They need no key. */
export function healthRoutes(service: MonitoringDeps) {
  const { settings, isStopping, worker } = service
  const checkDatabase = databaseCheck(service)
  return newRouter()
    .handle(livez, c => c.json({ status: 'ok' as const }))
    .handle(readyz, async c => {
      if (isStopping()) throw requestError('service_stopping')
      await checkDatabase()
      checkDns(service)
      return c.json({ status: 'ok' as const, disk: await diskStatus(service) }, 200)
    })
    .handle(health, async c => {
      const databaseStatus = await checkDatabase().then(
        () => 'ok' as const,
        () => 'failing' as const,
      )
      const { state, dns, smtp } = service.machine()
      const disk = await diskStatus(service)
      const isFailing = databaseStatus === 'failing' || state === 'failing' || disk === 'low'
      const working = state === 'checking' ? ('checking' as const) : ('ok' as const)
      const status = isStopping() ? 'stopping' : isFailing ? 'failing' : working
      const { jobs } = worker.status()
      return c.json({
        status,
        version: settings.version,
        database: databaseStatus,
        dns,
        smtp,
        disk,
        jobs,
      })
    })
}

/**
 * Low disk space refuses only new lists. The service stays ready: everything else works, and
 * deleting lists frees space.
 */
const diskStatus = async ({ disk }: MonitoringDeps) =>
  (await disk()).isLow ? ('low' as const) : ('ok' as const)

/** Throws if the database does not answer in time. Concurrent checks share one query. */
function databaseCheck({ database, clock, log }: MonitoringDeps): () => Promise<void> {
  let pending: Promise<unknown> | null = null
  return async () => {
    pending ??= ping(database).finally(() => {
      pending = null
    })
    try {
      await inTime(clock, pending)
    } catch (error) {
      writeLog(log, API_LOG.databaseNotResponding, { why: errorMessage(error) })
      throw requestError('database_not_responding', { cause: error })
    }
  }
}

/**
 * Throws while the DNS check fails. Before the first check ends the service is ready: verifications
 * wait for it.
 */
function checkDns({ machine }: MonitoringDeps): void {
  const problem = machine().problems.find(({ cause }) => cause === 'dns')
  if (problem === undefined) return
  throw requestError('dns_failing', { detail: problem.detail })
}

const okSchema = z.object({ status: z.literal('ok') }).openapi('Ok')
const diskSchema = z.enum(['ok', 'low']).openapi({
  example: 'ok',
  description: '`low`: the disk is almost full, and new lists are rejected with 507.',
})
const readySchema = okSchema.extend({ disk: diskSchema }).openapi('Ready')
const healthSchema = z
  .object({
    status: z.enum(['ok', 'checking', 'stopping', 'failing']).openapi({
      example: 'ok',
      description:
        '`checking`: nothing fails, but the first check of the DNS server has not ended.',
    }),
    version: z.string().openapi({ example: '1.0.0' }),
    database: z.enum(['ok', 'failing']).openapi({ example: 'ok' }),
    dns: z.enum(['ok', 'checking', 'failing']).openapi({
      example: 'ok',
      description:
        'Whether the DNS server passed its last check. `checking` until the first one ends, which this request starts if necessary.',
    }),
    smtp: z.enum(['ok', 'failing']).openapi({
      example: 'ok',
      description:
        'Whether mail servers can be reached, as far as verifications and the checks of the dashboard show. While it is `failing`, addresses that need a mail server end as `unknown`.',
    }),
    disk: diskSchema,
    jobs: z.number().int().openapi({ description: 'Jobs in progress.', example: 1 }),
  })
  .openapi('Health')

/** Describes an operation that needs no key. */
const monitoringRoute = <const Path extends string, const Answer extends object>(
  path: Path,
  {
    answer,
    ...texts
  }: { operationId: string; summary: string; description?: string; answer: Answer },
) =>
  createRoute({
    method: 'get',
    path,
    tags: ['Service'],
    security: [],
    ...texts,
    responses: {
      200: { ...answer, headers: responseHeaders() },
      ...errorResponses(ANY_OPERATION),
    } as { readonly 200: Answer },
  })

const livez = monitoringRoute('/livez', {
  operationId: 'isAlive',
  summary: 'Check liveness',
  answer: json(okSchema, 'The process is running', { status: 'ok' }),
})
const readyz = monitoringRoute('/readyz', {
  operationId: 'isReady',
  summary: 'Check readiness',
  description:
    'Returns 503 while the service is stopping, the database fails, or the DNS server fails its check.',
  answer: json(readySchema, 'The service is ready', { status: 'ok', disk: 'ok' }),
})
const health = monitoringRoute('/health', {
  operationId: 'getHealth',
  summary: 'Get the health of the service',
  answer: json(healthSchema, 'The health. The status is 200 even if a component fails', {
    status: 'ok',
    version: '0.1.0',
    database: 'ok',
    dns: 'ok',
    smtp: 'ok',
    disk: 'ok',
    jobs: 0,
  }),
})
