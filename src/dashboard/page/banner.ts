import type { Context, MiddlewareHandler } from 'hono'
import { formatBytes } from '../../base/format.ts'
import type { ReadDisk } from '../../work/upload/disk.ts'
import type { DashboardParts, Env } from '../parts.ts'
import { webhookTroubles } from '../webhooks/banner.ts'
import type { Html } from './html.ts'
import { notice } from './notice.ts'

/** What every page tells above its own matter. */
export function banners({ health, disk }: DashboardParts): MiddlewareHandler<Env> {
  return (c, next) => {
    c.set('banners', async () => {
      // Health itself says more of it.
      const isToBeTold = c.get('user').isOperator && !c.req.path.startsWith('/doctor')
      const trouble = isToBeTold ? health.trouble() : null
      const told = trouble === null ? [] : [notice('warn', trouble)]
      return [...(await diskBanner(c, disk)), ...told, ...(await webhookTroubles(c))]
    })
    return next()
  }
}

/** Where lists are sent and looked at everybody should know that none is taken; whoever runs the service, everywhere. */
async function diskBanner(c: Context<Env>, disk: ReadDisk): Promise<readonly Html[]> {
  const { isOperator } = c.get('user')
  if (!isOperator && !/^\/lists\b/.test(c.req.path)) return []
  const { freeBytes, isLow } = await disk()
  if (!isLow) return []
  const free =
    freeBytes !== null && isOperator
      ? ` ${formatBytes(freeBytes)} are free: make room on the disk of the data directory.`
      : ''
  return [notice('warn', `${DISK_LOW}${free}`)]
}

/** What is said where a list is refused for it. */
export const DISK_LOW =
  'The disk of the service is almost full: new lists are refused until there is room. Everything else works.'
