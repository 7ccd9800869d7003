import { newRouter } from '../router.ts'
import type { Service } from '../service.ts'
import { jobChangeRoutes } from './change.ts'
import { downloadRoutes } from './download/download.ts'
import { jobListRoutes } from './list.ts'
import { statusRoutes } from './status.ts'

/** Everything about lists that were submitted. */
export function jobRoutes(service: Service) {
  const router = newRouter()
  router.route('/', statusRoutes(service))
  router.route('/', jobListRoutes(service))
  router.route('/', jobChangeRoutes(service))
  router.route('/', downloadRoutes(service))
  return router
}
