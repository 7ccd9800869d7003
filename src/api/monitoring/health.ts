import { createRoute, z } from '@hono/zod-openapi'
import type { CheckFailure } from '../../engine/dns/resolver-check.ts'
import { ping } from '../../maintenance/health-check.ts'
import { errorMessage } from '../../platform/error.ts'
import { ApiError } from '../errors/api-error.ts'
import { newRouter } from '../router.ts'
import { ErrorBody, json } from '../schemas/answers.ts'
import { inTime } from './in-time.ts'
import type { MonitoringDeps } from './monitored.ts'

/** For whoever watches the service: alive, ready for requests, and how it is. No key is needed. */
export function healthRoutes(service: MonitoringDeps) {
  const { settings, isStopping, worker } = service
  const checkStore = storeCheck(service)
  return newRouter()
    .openapi(livez, c => c.json({ status: 'ok' as const }))
    .openapi(readyz, async c => {
      if (isStopping()) {
        const sentence = 'The service is stopping'
        throw new ApiError('service_unavailable', sentence, { retryAfterS: 5 })
      }
      await checkStore()
      checkDns(service)
      return c.json({ status: 'ok' as const, disk: await diskWord(service) }, 200)
    })
    .openapi(health, async c => {
      const store = await checkStore().then(
        () => 'ok' as const,
        () => 'failing' as const,
      )
      const dns = dnsFailure(service) === null ? ('ok' as const) : ('failing' as const)
      const disk = await diskWord(service)
      const isWell = store === 'ok' && dns === 'ok' && disk === 'ok'
      const working = isWell ? ('ok' as const) : ('failing' as const)
      const status = isStopping() ? 'stopping' : working
      const { jobs } = worker.status()
      return c.json({ status, version: settings.version, database: store, dns, disk, jobs })
    })
}

/** A low disk refuses new lists alone. The service stays ready: all else works, and deleting lists makes room. */
const diskWord = async ({ disk }: MonitoringDeps) =>
  (await disk()).isLow ? ('low' as const) : ('ok' as const)

/** Throws where the database does not answer in time. One question at a time, however many look. */
function storeCheck({ database, clock, log }: MonitoringDeps): () => Promise<void> {
  let asking: Promise<unknown> | null = null
  return async () => {
    asking ??= ping(database).finally(() => {
      asking = null
    })
    try {
      await inTime(clock, asking)
    } catch (error) {
      log.error('the database does not answer', { why: errorMessage(error) })
      const sentence = 'The database does not answer'
      throw new ApiError('service_unavailable', sentence, { retryAfterS: 5, cause: error })
    }
  }
}

/** Throws while the DNS check fails. */
function checkDns(service: MonitoringDeps): void {
  const failure = dnsFailure(service)
  if (failure === null) return
  const sentence = `The DNS check fails: ${failure.detail}`
  throw new ApiError('service_unavailable', sentence, { retryAfterS: DNS_RETRY_AFTER_S })
}

/** A check that fails is made again in half a minute. */
const DNS_RETRY_AFTER_S = 30

/**
 * Why the DNS check fails. A call starts a check that is due and does not wait for it: without
 * requests nothing else would ask the DNS, and the service would stay unready.
 */
function dnsFailure({ engine }: MonitoringDeps): CheckFailure | null {
  const { resolverCheck } = engine
  resolverCheck?.startIfDue()
  return resolverCheck?.failure ?? null
}

const okSchema = z.object({ status: z.literal('ok') }).openapi('Ok')
const diskSchema = z.enum(['ok', 'low']).openapi({
  description:
    '`low`: the disk of the data directory is almost full, and new lists are refused with 507',
})
const readySchema = okSchema.extend({ disk: diskSchema }).openapi('Ready')
const healthSchema = z
  .object({
    status: z.enum(['ok', 'stopping', 'failing']),
    version: z.string(),
    database: z.enum(['ok', 'failing']),
    dns: z.enum(['ok', 'failing']).openapi({
      description: 'Whether the DNS server passed its last check',
    }),
    disk: diskSchema,
    jobs: z.number().int().openapi({ description: 'Jobs that are worked on' }),
  })
  .openapi('Health')

const ok = {
  200: {
    description: 'Yes',
    content: { 'application/json': { schema: okSchema, example: { status: 'ok' } } },
  },
}
const livez = createRoute({
  method: 'get',
  path: '/livez',
  operationId: 'isAlive',
  tags: ['Service'],
  summary: 'Whether the process runs',
  responses: ok,
})
const STOPPING = {
  ...{ success: false as const, error: 'The service is stopping' },
  ...{ code: 'service_unavailable' as const, request_id: 'req_01hx' },
}
const readyz = createRoute({
  method: 'get',
  path: '/readyz',
  operationId: 'isReady',
  tags: ['Service'],
  summary: 'Whether requests should be sent here',
  responses: {
    200: json(readySchema, 'Yes', { status: 'ok', disk: 'ok' }),
    503: json(
      ErrorBody,
      'Not now: it is stopping, its database fails, or its DNS server fails the check',
      STOPPING,
    ),
  },
})
const health = createRoute({
  method: 'get',
  path: '/health',
  operationId: 'getHealth',
  tags: ['Service'],
  summary: 'How the service is',
  responses: {
    200: {
      description: 'How it is; 200 even where something fails',
      content: {
        'application/json': {
          schema: healthSchema,
          example: {
            status: 'ok',
            version: '0.1.0',
            database: 'ok',
            dns: 'ok',
            disk: 'ok',
            jobs: 0,
          },
        },
      },
    },
  },
})
