import type { MiddlewareHandler } from 'hono'
import type { DashboardParts, Env } from '../parts.ts'
import { webhookTroubles } from '../webhooks/banner.ts'
import { notice } from './notice.ts'

/** What every page tells above its own matter. */
export function banners({ health }: DashboardParts): MiddlewareHandler<Env> {
  return (c, next) => {
    c.set('banners', async () => {
      // Health itself says more of it.
      const isToBeTold = c.get('user').isOperator && !c.req.path.startsWith('/doctor')
      const trouble = isToBeTold ? health.trouble() : null
      const told = trouble === null ? [] : [notice('warn', trouble)]
      return [...told, ...(await webhookTroubles(c))]
    })
    return next()
  }
}
