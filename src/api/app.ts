import type { OpenAPIHono } from '@hono/zod-openapi'
import type { Context, Hono, Env as PagesEnv } from 'hono'
import { accountRoutes } from './account/account.ts'
import type { Env } from './context.ts'
import { docsRoutes } from './docs.ts'
import { ApiError } from './errors/api-error.ts'
import { answerError } from './errors/errors.ts'
import { PREFLIGHT } from './headers.ts'
import { jobRoutes } from './jobs/jobs.ts'
import { keyRoutes } from './keys/keys.ts'
import { healthRoutes } from './monitoring/health.ts'
import { metricsRoutes } from './monitoring/monitoring-app.ts'
import { openapiRoutes } from './openapi.ts'
import { requestContext, showOpenLimit } from './request-context.ts'
import { newRouter } from './router.ts'
import type { Service } from './service.ts'
import { stateOf } from './state.ts'
import { verifyRoutes } from './verify/verify.ts'
import { webhookRoutes } from './webhooks/webhooks.ts'

/**
 * All paths of the service. Rooms answer with `c.json` or `c.body`, which take the headers along. `pages` are for
 * people, and come behind the paths of the API.
 */
export function createApp<E extends PagesEnv>(service: Service, pages?: Hono<E>): OpenAPIHono<Env> {
  const app = newRouter()
  const { metrics } = stateOf(service)
  app.use(requestContext(service, metrics))
  app.use(showOpenLimit(service))
  app.onError((error, c) => answerError(c, service.log, error))
  app.route('/', verifyRoutes(service))
  app.route('/', jobRoutes(service))
  app.route('/', webhookRoutes(service))
  app.route('/', accountRoutes(service))
  app.route('/', keyRoutes(service))
  app.route('/', healthRoutes(service))
  app.route('/', metricsRoutes(service, metrics))
  app.route('/', openapiRoutes(service, app))
  app.route('/', docsRoutes(service))
  if (pages !== undefined) app.route('/', pages)
  app.notFound(c => answerUnmatched(app, service, c))
  return app
}

/** Ends what would go on for as long as its clients listen; for the beginning of the end. */
export const endStreams = (service: Service): void => stateOf(service).streams.end()

/** Writes what the paths only noted; for the end, after the last answer and before the database is closed. */
export const closeApp = (service: Service): Promise<unknown> => stateOf(service).touches.close()

/** No path, or another method of one that there is. */
function answerUnmatched(app: OpenAPIHono<Env>, service: Service, c: Context<Env>): Response {
  const { method, path } = c.req
  const methods = methodsOf(app, path)
  const isOptions = method === 'OPTIONS'
  // A path of files knows its method, and only some names.
  if (methods.length === 0 || (methods.includes(method) && !isOptions)) {
    return answerError(
      c,
      service.log,
      new ApiError('not_found', 'There is no such path: /docs shows all that there are'),
    )
  }
  c.header('Allow', methods.join(', '))
  if (isOptions) return c.body(null, 204, PREFLIGHT)
  const sentence = `This path knows ${methods.join(', ')} alone`
  return answerError(c, service.log, new ApiError('method_not_allowed', sentence))
}

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

function methodsOf(app: OpenAPIHono<Env>, path: string): string[] {
  const known = METHODS.filter(method =>
    app.router.match(method, path)[0].some(([[, route]]) => route.method === method),
  )
  if (known.length === 0) return []
  return known.includes('GET')
    ? ['GET', 'HEAD', ...known.slice(1), 'OPTIONS']
    : [...known, 'OPTIONS']
}
