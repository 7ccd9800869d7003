import { newRouter } from '../router.ts'
import type { Service } from '../service.ts'

/** To be filled. */
export const accountRoutes = (_service: Service) => newRouter()
