import { createHash, timingSafeEqual } from 'node:crypto'
import { Hono, type MiddlewareHandler } from 'hono'
import { inRanges } from '../../platform/ip.ts'
import type { Env } from '../context.ts'
import { ApiError } from '../errors/api-error.ts'
import { answerError } from '../errors/errors.ts'
import { requestContext } from '../request-context.ts'
import { newRouter } from '../router.ts'
import { healthRoutes } from './health.ts'
import type { Metrics } from './metrics.ts'
import type { MonitoringDeps } from './monitored.ts'

/** Health and metrics on a port of their own. */
export function monitoringApp(deps: MonitoringDeps, metrics: Metrics): Hono<Env> {
  const { log } = deps
  const app = new Hono<Env>()
  app.use(requestContext(deps, metrics))
  app.onError((error, c) => answerError(c, log, error))
  app.notFound(c => answerError(c, log, new ApiError('not_found', ALL)))
  app.route('/', healthRoutes(deps))
  return app.route('/', metricsRoutes(deps, metrics))
}

const ALL = 'There are only /livez, /readyz, /health and /metrics'

/** For Prometheus, on this machine or with the token. */
export function metricsRoutes(deps: MonitoringDeps, metrics: Metrics) {
  return newRouter().get('/metrics', monitoringOnly(deps), async c =>
    c.body(await metrics.text(), 200, { 'Content-Type': metrics.contentType }),
  )
}

function monitoringOnly({ settings }: MonitoringDeps): MiddlewareHandler<Env> {
  const token = settings.metricsToken
  return async (c, next) => {
    const given = /^Bearer +(\S+) *$/i.exec(c.req.header('Authorization') ?? '')?.[1]
    if (token !== null && given !== undefined) {
      if (!isSame(given, token)) throw new ApiError('authentication_error', 'This is not the token')
      return next()
    }
    // What a proxy of this machine passes on comes from elsewhere, even where the proxy is not known as one.
    const isPassedOn = c.req.header('X-Forwarded-For') ?? c.req.header('Forwarded')
    if (isPassedOn === undefined && isLoopback(c.get('ip'))) return next()
    throw new ApiError('ip_restricted', METRICS_HELP)
  }
}

const METRICS_HELP =
  'Metrics are for this machine, or for who sends EV_METRICS_TOKEN as a Bearer token'

const isLoopback = inRanges(['127.0.0.0/8', '::1'])

/** Digests have one length, so that nothing is told about that of the token. */
const isSame = (one: string, other: string) => timingSafeEqual(digestOf(one), digestOf(other))

const digestOf = (text: string) => createHash('sha256').update(text).digest()
