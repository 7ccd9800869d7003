import { OpenAPIHono, type RouteConfig } from '@hono/zod-openapi'
import type { Env } from './context.ts'
import { validationError } from './errors/fault.ts'
import { refuseUnknown } from './middleware/refuse-unknown.ts'

/**
 * Creates a router. A route added with `openapi(route, handler)` refuses unknown names and values
 * that violate its schemas with an ApiError.
 */
export function newRouter(): OpenAPIHono<Env> {
  const router = new OpenAPIHono<Env>({
    // Treats `/v1/jobs/` as `/v1/jobs`.
    strict: false,
    defaultHook(result) {
      if (result.success) return
      // The input is present, although its type does not declare it.
      const input = 'data' in result ? result.data : undefined
      throw validationError(result.target, result.error.issues, input)
    },
  })
  const { openapi } = router
  router.openapi = ((route, ...rest) => openapi(addNameCheck(route), ...rest)) as typeof openapi
  return router
}

/**
 * Adds the check after the middleware of the route. Monitoring systems may add their own parameters
 * to the health paths, which are unversioned.
 */
function addNameCheck<R extends RouteConfig>(route: R): R {
  if (!route.path.startsWith('/v1/')) return route
  return { ...route, middleware: [...[route.middleware ?? []].flat(), refuseUnknown(route)] }
}
