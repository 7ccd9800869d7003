import type { Context, Hono, Env as PagesEnv } from 'hono'
import { accountRoutes } from './account.ts'
import type { ApiDeps } from './api-deps.ts'
import { auditRoutes } from './audit.ts'
import type { Env } from './context.ts'
import { answerError } from './errors/errors.ts'
import { requestError } from './errors/request-errors.ts'
import { feedbackRoutes, providerFeedbackRoutes } from './feedback.ts'
import { feedbackSourceRoutes } from './feedback-sources.ts'
import { PREFLIGHT } from './headers.ts'
import { jobRoutes } from './jobs/jobs.ts'
import { keyRoutes } from './keys.ts'
import { managedAccountRoutes } from './managed-accounts.ts'
import { mcpRoutes } from './mcp.ts'
import { healthRoutes, metricsRoutes } from './monitoring.ts'
import { openapiDocument } from './openapi-document.ts'
import { peopleRoutes } from './people.ts'
import { reacherRoutes } from './reacher/routes.ts'
import { requestContext } from './request-context.ts'
import { newRouter, type Router } from './route.ts'
import { scheduleRoutes } from './schedules.ts'
import { verifyRoutes } from './verify/verify.ts'
import { webhookRoutes } from './webhooks/webhooks.ts'

/**
 * Builds the app with all routes. Handlers respond with `c.json` or `c.body`, which include the
 * headers set earlier. `pages` is the dashboard, mounted after the API.
 */
export function createApp<E extends PagesEnv>(service: ApiDeps, pages?: Hono<E>): Router {
  const app = newRouter()
  const { metrics } = service
  app.use(requestContext(service, metrics, service))
  app.onError((error, c) => answerError(c, service.log, error))
  app.include(verifyRoutes(service))
  app.include(jobRoutes(service))
  app.include(scheduleRoutes(service))
  app.include(webhookRoutes(service))
  app.include(feedbackRoutes(service))
  app.include(feedbackSourceRoutes(service))
  app.include(providerFeedbackRoutes(service))
  app.include(accountRoutes(service))
  app.include(auditRoutes(service))
  app.include(keyRoutes(service))
  app.include(peopleRoutes(service))
  app.include(managedAccountRoutes(service))
  app.include(healthRoutes(service))
  app.route('/', metricsRoutes(service, metrics))
  app.route('/', openapiRoutes(service, app))
  app.route('/', mcpRoutes(service, app))
  if (service.settings.reacherApi) app.route('/', reacherRoutes(service))
  if (pages !== undefined) app.route('/', pages)
  app.notFound(c => answerUnmatched(app, service, c))
  return app
}

/** Answers OPTIONS, 404 for an unknown path, and 405 for another method of a known path. */
function answerUnmatched(app: Router, service: ApiDeps, c: Context<Env>): Response {
  const { method, path } = c.req
  const methods = allowedMethods(app, path)
  const isOptions = method === 'OPTIONS'
  // A route of static files matches GET, but exists only for some file names.
  if (methods.length === 0 || (methods.includes(method) && !isOptions)) {
    const error = requestError('path_unknown', { remedy: 'See /docs for all paths.' })
    return answerError(c, service.log, error)
  }
  c.header('Allow', methods.join(', '))
  if (isOptions) return c.body(null, 204, PREFLIGHT)
  const usable = methods.filter(name => name !== 'HEAD' && name !== 'OPTIONS')
  return answerError(c, service.log, requestError('method_not_allowed', { methods: usable }))
}

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']

function allowedMethods(app: Router, path: string): string[] {
  const known = METHODS.filter(method =>
    app.router.match(method, path)[0].some(([[, route]]) => route.method === method),
  )
  if (known.length === 0) return []
  return known.includes('GET')
    ? ['GET', 'HEAD', ...known.slice(1), 'OPTIONS']
    : [...known, 'OPTIONS']
}

/** Serves the OpenAPI document, generated from the schemas that validate requests. */
function openapiRoutes(service: ApiDeps, app: Router) {
  let text: string | undefined
  return newRouter().get('/openapi.json', c => {
    text ??= JSON.stringify(openapiDocument(service, app))
    return c.body(text, 200, { 'Content-Type': 'application/json' })
  })
}
