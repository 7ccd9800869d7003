import { createHash, timingSafeEqual } from 'node:crypto'
import { Hono, type MiddlewareHandler } from 'hono'
import { inRanges } from '../platform/ip.ts'
import type { Env } from './context.ts'
import { ApiError } from './errors/api-error.ts'
import { answerError } from './errors/errors.ts'
import { healthRoutes } from './health.ts'
import type { Metrics } from './metrics.ts'
import { requestContext } from './request-context.ts'
import { newRouter } from './route.ts'
import type { MonitoringDeps } from './service.ts'

/** Serves health and metrics on a separate port. */
export function monitoringApp(deps: MonitoringDeps, metrics: Metrics): Hono<Env> {
  const { log } = deps
  const app = new Hono<Env>()
  app.use(requestContext(deps, metrics))
  app.onError((error, c) => answerError(c, log, error))
  app.notFound(c => answerError(c, log, new ApiError('not_found', UNKNOWN_PATH)))
  app.route('/', healthRoutes(deps))
  return app.route('/', metricsRoutes(deps, metrics))
}

const UNKNOWN_PATH = 'Path not found. Available paths: /livez, /readyz, /health and /metrics.'

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
      if (!isEqual(sent, token))
        throw new ApiError('authentication_error', 'Invalid metrics token.')
      return next()
    }
    // A request forwarded by a proxy on this machine comes from elsewhere, even if the proxy is not
    // in `trustProxy`.
    const isForwarded = c.req.header('X-Forwarded-For') ?? c.req.header('Forwarded')
    if (isForwarded === undefined && isLoopback(c.get('ip'))) return next()
    throw new ApiError('ip_restricted', METRICS_HELP)
  }
}

const METRICS_HELP =
  'Metrics are available on this machine, or with EV_METRICS_TOKEN as a Bearer token'

const isLoopback = inRanges(['127.0.0.0/8', '::1'])

/** Digests have equal lengths, so that timing reveals nothing about the length of the token. */
const isEqual = (one: string, other: string) => timingSafeEqual(sha256(one), sha256(other))

const sha256 = (text: string) => createHash('sha256').update(text).digest()
