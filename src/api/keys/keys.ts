import { newRouter } from '../router.ts'
import type { Service } from '../service.ts'
import { keyChangeRoutes } from './change.ts'
import { keyCreateRoutes } from './create.ts'

/** The keys of an account. */
export function keyRoutes(service: Service) {
  const router = newRouter()
  router.route('/', keyCreateRoutes(service))
  router.route('/', keyChangeRoutes(service))
  return router
}
