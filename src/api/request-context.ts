import type { Context, MiddlewareHandler } from 'hono'
import { routePath } from 'hono/route'
import type { Env } from './context.ts'
import { commonHeaders, layHeader } from './headers.ts'
import { clientIp } from './middleware/client-ip.ts'
import { limitHeaders, openLimit, showLimit } from './middleware/rate-limit-buckets.ts'
import type { Metrics } from './monitoring/metrics.ts'
import type { MonitoringDeps } from './monitoring/monitored.ts'
import type { Service } from './service.ts'

/**
 * Around everything: gives a request its id and its address, an answer the headers that each has, and the log its
 * line. Headers are laid ready before the handlers: changing an answer afterwards would copy it.
 */
export function requestContext(
  monitoring: MonitoringDeps,
  metrics: Metrics,
): MiddlewareHandler<Env> {
  const { clock, log, random, settings } = monitoring
  const ipOf = clientIp(settings.trustProxy)
  const common = Object.entries(commonHeaders(monitoring))
  return async (c, next) => {
    const startedAt = clock.monotonicNow()
    const requestId = `req_${random.token(ID_LENGTH)}`
    c.set('requestId', requestId)
    const ip = ipOf(c.env?.incoming, () => c.req.header('X-Forwarded-For'))
    c.set('ip', ip)
    for (const [name, value] of common) layHeader(c, name, value)
    layHeader(c, 'X-Request-Id', requestId)
    await next()
    const { method } = c.req
    const [route, { status }] = [routeOf(c), c.res]
    const tookMs = clock.monotonicNow() - startedAt
    metrics.answered({ method, route, status, tookMs })
    // Templates of paths alone: a path may name what somebody owns, a query an address.
    const line = { requestId, method, route, status, ms: Math.round(tookMs), ...callerFrom(c) }
    if (QUIET.has(route) && status < 400) log.debug('request', line)
    else log.info('request', line)
  }
}

/** Shows the limit of whoever has no key, until a handler shows another. */
export function showOpenLimit(service: Service): MiddlewareHandler<Env> {
  return (c, next) => {
    showLimit(c, openLimit(service, c.get('ip')))
    return next()
  }
}

/** Headers of an answer that comes about without the app, such as to what nobody could read as a request. */
export const bareHeaders = (service: Service, ip: string): Record<string, string> => ({
  ...commonHeaders(service),
  ...limitHeaders(service, ip),
})

/** 103 bits of chance. */
const ID_LENGTH = 20

/** Asked every few seconds by whoever watches the service. */
const QUIET = new Set(['/livez', '/readyz', '/health', '/metrics'])

/** The path as it was declared; what no path fits has one name, or anybody could fill the memory of counts. */
function routeOf(c: Context<Env>): string {
  const path = routePath(c, -1)
  return path === '/*' || path === '*' ? 'none' : path
}

/** Of a session its id alone: with its token anybody would be it. */
const callerFrom = (c: Context<Env>) => ({
  keyId: c.get('caller')?.key.id,
  ...(c.env?.session !== undefined && { sessionId: c.env.session.sessionId }),
})
