import { newRouter } from '../router.ts'
import type { Service } from '../service.ts'

/** To be filled. */
export const jobRoutes = (_service: Service) => newRouter()
