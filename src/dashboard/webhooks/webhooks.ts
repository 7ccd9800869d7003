import { Hono } from 'hono'
import type { DashboardDeps, Env } from '../deps.ts'
import { actionRoutes } from './actions.ts'
import { createRoutes } from './create.ts'
import { deliveryRoutes } from './delivery.ts'
import { endpointRoutes } from './endpoint.ts'
import { listRoutes } from './list.ts'

/** Where an account wants to be told of events, and what was sent there. */
export function webhooksRoutes(deps: DashboardDeps): Hono<Env> {
  const router = new Hono<Env>()
  router.route('/', listRoutes(deps))
  // Before the endpoints by their IDs, as it looks like one.
  router.route('/', createRoutes(deps))
  router.route('/', endpointRoutes(deps))
  router.route('/', actionRoutes(deps))
  router.route('/', deliveryRoutes())
  return router
}
