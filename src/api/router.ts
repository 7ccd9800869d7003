import { OpenAPIHono, type RouteConfig } from '@hono/zod-openapi'
import type { Env } from './context.ts'
import { faultOf } from './errors/fault.ts'
import { refuseUnknown } from './middleware/refuse-unknown.ts'

/**
 * A room of the API, to be filled by `openapi(route, handler)`: what its schemas do not name, and what does not fit
 * them, is told as an ApiError.
 */
export function newRouter(): OpenAPIHono<Env> {
  const router = new OpenAPIHono<Env>({
    // `/v1/jobs/` is `/v1/jobs`.
    strict: false,
    defaultHook(outcome) {
      if (outcome.success) return
      // What was given stands there, though its type does not say so.
      const given = 'data' in outcome ? outcome.data : undefined
      throw faultOf(outcome.target, outcome.error.issues, given)
    },
  })
  const { openapi } = router
  router.openapi = ((route, ...rest) => openapi(addNameCheck(route), ...rest)) as typeof openapi
  return router
}

/** Behind the guard of the route. Monitors may add parameters of their own to the health paths, which have no version. */
function addNameCheck<R extends RouteConfig>(route: R): R {
  if (!route.path.startsWith('/v1/')) return route
  return { ...route, middleware: [...[route.middleware ?? []].flat(), refuseUnknown(route)] }
}
