import { createRoute, z } from '@hono/zod-openapi'
import type { CheckFailure } from '../engine/dns/resolver-check.ts'
import { ping } from '../maintenance/inspect.ts'
import { errorMessage } from '../platform/error.ts'
import { ApiError } from './errors/api-error.ts'
import { inTime } from './metrics.ts'
import { newRouter } from './route.ts'
import { json } from './schemas/answers.ts'
import { ANY_OPERATION, errorResponses } from './schemas/error.ts'
import { responseHeaders } from './schemas/headers.ts'
import type { MonitoringDeps } from './service.ts'

/** Routes for monitoring: liveness, readiness and health. They need no key. */
export function healthRoutes(service: MonitoringDeps) {
  const { settings, isStopping, worker } = service
  const checkDatabase = databaseCheck(service)
  return newRouter()
    .openapi(livez, c => c.json({ status: 'ok' as const }))
    .openapi(readyz, async c => {
      if (isStopping()) {
        const message = 'The service is stopping.'
        throw new ApiError('service_unavailable', message, { retryAfterS: 5 })
      }
      await checkDatabase()
      checkDns(service)
      return c.json({ status: 'ok' as const, disk: await diskStatus(service) }, 200)
    })
    .openapi(health, async c => {
      const databaseStatus = await checkDatabase().then(
        () => 'ok' as const,
        () => 'failing' as const,
      )
      const dns = dnsFailure(service) === null ? ('ok' as const) : ('failing' as const)
      const disk = await diskStatus(service)
      const isHealthy = databaseStatus === 'ok' && dns === 'ok' && disk === 'ok'
      const working = isHealthy ? ('ok' as const) : ('failing' as const)
      const status = isStopping() ? 'stopping' : working
      const { jobs } = worker.status()
      return c.json({
        status,
        version: settings.version,
        database: databaseStatus,
        dns,
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
      log.error('the database does not answer', { why: errorMessage(error) })
      const message = 'The database does not respond.'
      throw new ApiError('service_unavailable', message, { retryAfterS: 5, cause: error })
    }
  }
}

/** Throws while the DNS check fails. */
function checkDns(service: MonitoringDeps): void {
  const failure = dnsFailure(service)
  if (failure === null) return
  const message = `The DNS check fails: ${failure.detail}`
  throw new ApiError('service_unavailable', message, { retryAfterS: DNS_RETRY_AFTER_S })
}

/** A failed check is repeated after half a minute. */
const DNS_RETRY_AFTER_S = 30

/**
 * Returns why the DNS check fails, or null. Starts a check that is due and does not wait for it:
 * without requests nothing else would query the DNS, and the service would stay unready.
 */
function dnsFailure({ engine }: MonitoringDeps): CheckFailure | null {
  const { resolverCheck } = engine
  resolverCheck?.startIfDue()
  return resolverCheck?.failure ?? null
}

const okSchema = z.object({ status: z.literal('ok') }).openapi('Ok')
const diskSchema = z.enum(['ok', 'low']).openapi({
  description:
    '`low`: the disk of the data directory is almost full, and new lists are rejected with 507.',
})
const readySchema = okSchema.extend({ disk: diskSchema }).openapi('Ready')
const healthSchema = z
  .object({
    status: z.enum(['ok', 'stopping', 'failing']),
    version: z.string(),
    database: z.enum(['ok', 'failing']),
    dns: z.enum(['ok', 'failing']).openapi({
      description: 'Whether the DNS server passed its last check.',
    }),
    disk: diskSchema,
    jobs: z.number().int().openapi({ description: 'Jobs in progress.' }),
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
    ...{ method: 'get', path, tags: ['Service'], security: [] },
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
  answer: json(healthSchema, 'The health; 200 even if a component fails', {
    ...{ status: 'ok', version: '0.1.0', database: 'ok', dns: 'ok', disk: 'ok', jobs: 0 },
  }),
})
