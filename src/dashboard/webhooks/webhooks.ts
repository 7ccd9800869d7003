import { Hono } from 'hono'
import type { DashboardParts, Env } from '../parts.ts'
import { actionRoutes } from './actions.ts'
import { createRoutes } from './create.ts'
import { deliveryRoutes } from './delivery.ts'
import { endpointRoutes } from './endpoint.ts'
import { listRoutes } from './list.ts'

/** Where an account wants to be told of events, and what was sent there. */
export function webhooksRoutes(parts: DashboardParts): Hono<Env> {
  const router = new Hono<Env>()
  router.route('/', listRoutes(parts))
  // Before the endpoints by their IDs, as it looks like one.
  router.route('/', createRoutes(parts))
  router.route('/', endpointRoutes(parts))
  router.route('/', actionRoutes(parts))
  router.route('/', deliveryRoutes())
  return router
}
