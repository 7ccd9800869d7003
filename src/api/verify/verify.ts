import { listRoutes } from '../lists/routes.ts'
import { newRouter } from '../router.ts'
import type { Service } from '../service.ts'
import { singleRoutes } from './routes.ts'

/** Everything that verifies: one address, and lists. */
export const verifyRoutes = (service: Service) =>
  newRouter().route('/', singleRoutes(service)).route('/', listRoutes(service))
