import { newRouter } from '../router.ts'
import type { Service } from '../service.ts'
import { webhookChangeRoutes } from './change.ts'
import { webhookCreateRoutes } from './create.ts'
import { deliveryLogRoutes } from './delivery-log.ts'
import { catalogueRoutes } from './event-types.ts'
import { redeliveryRoutes } from './redelivery.ts'
import { webhookSecretRoutes } from './secret.ts'
import { webhookTestRoutes } from './test-event.ts'

/** Where an account wants to be told of events, and what was sent there. */
export function webhookRoutes(service: Service) {
  const router = newRouter()
  router.route('/', webhookCreateRoutes(service))
  // Before the endpoints by their IDs, as it looks like one.
  router.route('/', catalogueRoutes(service))
  router.route('/', webhookChangeRoutes(service))
  router.route('/', webhookSecretRoutes(service))
  router.route('/', webhookTestRoutes(service))
  router.route('/', deliveryLogRoutes(service))
  router.route('/', redeliveryRoutes(service))
  return router
}
