import type { Context, MiddlewareHandler } from 'hono'
import type { ReadDisk } from '../../jobs/upload/store-upload.ts'
import { formatBytes } from '../../platform/format.ts'
import type { DashboardDeps, Env } from '../deps.ts'
import { webhookAlerts } from '../webhooks/actions.ts'
import type { Html } from './html.ts'
import { notice } from './notice.ts'

/** What every page tells above its own matter. */
export function banners({ health, disk }: DashboardDeps): MiddlewareHandler<Env> {
  return (c, next) => {
    c.set('banners', async () => {
      // Health itself says more of it.
      const isShown = c.get('user').isAdmin && !c.req.path.startsWith('/doctor')
      const trouble = isShown ? health.trouble() : null
      const shown = trouble === null ? [] : [notice('warn', trouble)]
      return [...(await diskBanner(c, disk)), ...shown, ...(await webhookAlerts(c))]
    })
    return next()
  }
}

/** Where lists are sent and looked at everybody should know that none is taken; whoever runs the service, everywhere. */
async function diskBanner(c: Context<Env>, disk: ReadDisk): Promise<readonly Html[]> {
  const { isAdmin } = c.get('user')
  if (!isAdmin && !/^\/lists\b/.test(c.req.path)) return []
  const { freeBytes, isLow } = await disk()
  if (!isLow) return []
  const free =
    freeBytes !== null && isAdmin
      ? ` ${formatBytes(freeBytes)} are free: make room on the disk of the data directory.`
      : ''
  return [notice('warn', `${DISK_LOW}${free}`)]
}

/** What is said where a list is refused for it. */
export const DISK_LOW =
  'The disk of the service is almost full: new lists are refused until there is room. Everything else works.'
