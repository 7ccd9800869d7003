import { newRouter } from '../router.ts'
import type { Service } from '../service.ts'
import { creditRoutes } from './credits.ts'
import { historyRoutes } from './history.ts'
import { limitRoutes } from './limits.ts'
import { statsRoutes } from './stats.ts'

/** What an account asked, used and has left. */
export function accountRoutes(service: Service) {
  const router = newRouter()
  router.route('/', historyRoutes(service))
  router.route('/', creditRoutes(service))
  router.route('/', limitRoutes(service))
  router.route('/', statsRoutes(service))
  return router
}
