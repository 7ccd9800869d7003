import { newRouter } from '../router.ts'
import type { Service } from '../service.ts'
import { catalogueRoutes } from './catalogue.ts'
import { webhookChangeRoutes } from './change.ts'
import { webhookCreateRoutes } from './create.ts'

/** Where an account wants to be told of events. */
export function webhookRoutes(service: Service) {
  const router = newRouter()
  router.route('/', webhookCreateRoutes(service))
  // Before the endpoints by their IDs, as it looks like one.
  router.route('/', catalogueRoutes(service))
  router.route('/', webhookChangeRoutes(service))
  return router
}
