import type { Context, MiddlewareHandler } from 'hono'
import type { ReadDisk } from '../../jobs/upload/store-upload.ts'
import { formatBytes } from '../../platform/format.ts'
import type { DashboardDeps, Env } from '../deps.ts'
import { webhookAlerts } from '../webhooks/actions.ts'
import type { Html } from './html.ts'
import { notice } from './notice.ts'

/** Provides the alerts that every page shows above its content. */
export function banners({ health, disk }: DashboardDeps): MiddlewareHandler<Env> {
  return (c, next) => {
    c.set('banners', async () => {
      // The Health page shows the details itself.
      const isShown = c.get('user').isAdmin && !c.req.path.startsWith('/doctor')
      const alert = isShown ? health.alert() : null
      const shown = alert === null ? [] : [notice('warn', alert)]
      return [...(await diskBanner(c, disk)), ...shown, ...(await webhookAlerts(c))]
    })
    return next()
  }
}

/** Warns that uploads are refused: all users on the list pages, admins on every page. */
async function diskBanner(c: Context<Env>, disk: ReadDisk): Promise<readonly Html[]> {
  const { isAdmin } = c.get('user')
  if (!isAdmin && !/^\/lists\b/.test(c.req.path)) return []
  const { freeBytes, isLow } = await disk()
  if (!isLow) return []
  const free =
    freeBytes !== null && isAdmin
      ? ` ${formatBytes(freeBytes)} left: free up space on the disk of the data directory.`
      : ''
  return [notice('warn', `${DISK_LOW}${free}`)]
}

/** Also the error of an upload that is refused for this reason. */
export const DISK_LOW =
  'The disk of the service is almost full. New lists are refused until space is freed. Everything else works.'
