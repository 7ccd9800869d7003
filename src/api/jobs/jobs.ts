import { newRouter } from '../router.ts'
import type { Service } from '../service.ts'
import { breakdownRoutes } from './breakdown.ts'
import { jobChangeRoutes } from './change.ts'
import { downloadRoutes } from './download.ts'
import { jobEventRoutes } from './events.ts'
import { jobListRoutes } from './list.ts'
import { resultRoutes } from './results.ts'
import { jobResumeRoutes } from './resume.ts'
import { statusRoutes } from './status.ts'

/** Everything about lists that were submitted. */
export function jobRoutes(service: Service) {
  const router = newRouter()
  router.route('/', statusRoutes(service))
  router.route('/', jobListRoutes(service))
  router.route('/', jobEventRoutes(service))
  router.route('/', jobChangeRoutes(service))
  router.route('/', jobResumeRoutes(service))
  router.route('/', resultRoutes(service))
  router.route('/', breakdownRoutes(service))
  router.route('/', downloadRoutes(service))
  return router
}
