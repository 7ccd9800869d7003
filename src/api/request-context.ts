import type { Context, HonoRequest, MiddlewareHandler } from 'hono'
import { matchedRoutes } from 'hono/route'
import type { Origin } from '../audit.ts'
import { inRanges, isLoopback, plainIp } from '../platform/ip.ts'
import { writeLog } from '../platform/log.ts'
import type { Env, Incoming } from './context.ts'
import { ALLOW_ORIGIN, addHeader, commonHeaders, getHeader, type HeaderDeps } from './headers.ts'
import type { Metrics } from './metrics.ts'
import { type LimitDeps, limitHeaders, openLimit } from './middleware/rate-limit-buckets.ts'
import type { MonitoringDeps } from './service.ts'
import { API_LOG } from './telemetry.ts'

/**
 * Outermost middleware: assigns the ID and the client IP address of a request, adds the headers of
 * every response, and logs the request. A response without a limit shows that of a client without a
 * key, if `limits` are given.
 */
export function requestContext(
  monitoring: MonitoringDeps,
  metrics: Metrics,
  limits: LimitDeps | null = null,
): MiddlewareHandler<Env> {
  const { clock, log, random, settings } = monitoring
  const getClientIp = clientIp(settings.trustProxy)
  const { [ALLOW_ORIGIN]: anyOrigin = '*', ...rest } = commonHeaders(monitoring)
  const common = Object.entries(rest)
  return async (c, next) => {
    const startedAt = clock.monotonicNow()
    const requestId = `req_${random.token(ID_LENGTH)}`
    c.set('requestId', requestId)
    const ip = getClientIp(c.env?.incoming, () => getHeader(c, 'x-forwarded-for'))
    c.set('ip', ip)
    c.set('isLocal', isLoopback(ip) && !isForwarded(c))
    await next()
    for (const [name, value] of common) addHeader(c, name, value)
    addHeader(c, ALLOW_ORIGIN, c.get('allowedOrigin') ?? anyOrigin)
    addHeader(c, 'X-Request-Id', requestId)
    const limit = c.get('limit') ?? (limits && openLimit(limits, ip))
    if (limit !== null) for (const [name, value] of limitHeaders(limit)) addHeader(c, name, value)
    const { method } = c.req
    const [route, { status }] = [routeTemplate(c), c.res]
    const tookMs = clock.monotonicNow() - startedAt
    metrics.answered({ method, route, status, tookMs })
    // Only the template of the path: a path can contain IDs, a query addresses.
    const fields = {
      requestId,
      method,
      route,
      status,
      ms: Math.round(tookMs),
      keyId: c.get('caller')?.key.id,
      // Never its token, which would grant access.
      sessionId: c.env?.session?.sessionId,
      poll: isPoll(c.req) && !route.startsWith('/v1/') ? true : undefined,
    }
    const isQuiet = QUIET.has(route) && status < 400
    writeLog(log, isQuiet ? API_LOG.quietRequest : API_LOG.request, fields)
  }
}

/** Headers of a response that bypasses the app, such as to an unparsable request. */
export const bareHeaders = (
  service: HeaderDeps & LimitDeps,
  ip: string,
): Record<string, string> => ({
  ...commonHeaders(service),
  ...Object.fromEntries(limitHeaders(openLimit(service, ip))),
})

/** 103 bits of entropy. */
const ID_LENGTH = 20

/** Polled every few seconds by monitoring systems. */
const QUIET = new Set(['/livez', '/readyz', '/health', '/metrics'])

/** Whether a request refreshes a part of an open page of the dashboard. */
export const isPoll = (req: HonoRequest): boolean =>
  req.method === 'GET' &&
  (req.header('HX-Request') === 'true' || req.header('Accept') === 'text/event-stream')

/**
 * The declared path; middleware matches all methods. Unmatched paths share one name, or clients
 * could create any number of metric labels.
 */
function routeTemplate(c: Context<Env>): string {
  // Set by the guard of most routes; Hono copies the list of all matched ones.
  const known = c.get('route')
  if (known !== undefined) return known
  const route = matchedRoutes(c).findLast(({ method }) => method !== 'ALL')
  return route?.path ?? 'none'
}

/** Returns the origin of a request for the audit log. */
const originOf = (c: Context<Env>): Origin => {
  const session = c.env?.session
  const { key, person } = c.get('caller')
  return {
    actor: session !== undefined ? 'session' : c.get('isLink') ? 'link' : 'key',
    keyId: person === null ? key.id : null,
    person,
    sessionId: session?.sessionId ?? null,
    ip: c.get('ip'),
  }
}

/** Returns dependencies with the origin of a request, for use cases that write to the audit log. */
export const withOrigin = <Deps extends object>(c: Context<Env>, deps: Deps) => ({
  ...deps,
  origin: originOf(c),
})

/**
 * Returns a function that determines the IP address of a client: the address of its socket or,
 * behind a proxy of `trustProxy`, the last address in X-Forwarded-For that is not such a proxy.
 * Earlier entries can be forged.
 */
function clientIp(trustProxy: readonly string[]) {
  const trusted = inRanges(trustProxy)
  return (incoming: Incoming | undefined, forwardedFor: () => string | undefined): string => {
    const direct = plainIp(incoming?.socket?.remoteAddress ?? '') ?? UNKNOWN_CALLER
    if (!trusted(direct)) return direct
    let nearest = direct
    for (const hop of (forwardedFor() ?? '').split(',').slice(-HOPS_MAX).reverse()) {
      const ip = plainIp(hop.trim().replace(PORT, '$1$2'))
      if (ip === null) return nearest
      nearest = ip
      if (!trusted(ip)) return ip
    }
    return nearest
  }
}

/**
 * Whether a proxy forwarded the request. A proxy on this machine that is not in `trustProxy` gives
 * all of its clients a loopback address.
 */
const isForwarded = (c: Context<Env>): boolean =>
  FORWARDING_NAMES.some(name => getHeader(c, name) !== undefined)

/** The headers of RFC 7239 and RFC 9110 §7.6.3, and those that proxies use in their place. */
export const FORWARDING_HEADERS = [
  ...(['Forwarded', 'Via', 'X-Forwarded-For', 'X-Forwarded-Host', 'X-Forwarded-Proto'] as const),
  ...(['X-Real-IP', 'True-Client-IP', 'CF-Connecting-IP'] as const),
] as const

const FORWARDING_NAMES = FORWARDING_HEADERS.map(name => name.toLowerCase() as Lowercase<string>)

/** Stands for a socket that was closed, which has no address. */
const UNKNOWN_CALLER = '0.0.0.0'

/** More proxies in a row do not occur in practice. */
const HOPS_MAX = 20

/** Some proxies write `192.0.2.1:1234`, `[2001:db8::1]` or `[2001:db8::1]:1234`. */
const PORT = /^(?:(\d+\.\d+\.\d+\.\d+):\d+|\[([^\]]+)\](?::\d+)?)$/
