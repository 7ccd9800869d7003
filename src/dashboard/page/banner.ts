import type { Context, MiddlewareHandler } from 'hono'
import type { ReadDisk } from '../../jobs/import/store-upload.ts'
import { formatBytes } from '../../platform/format.ts'
import type { Alerts, DashboardDeps, Env } from '../deps.ts'
import { machineBanner } from '../health/machine.ts'
import { findFailingWebhooks, webhookAlerts } from '../webhooks/actions.ts'
import type { Html } from './html.ts'
import { notice } from './notice.ts'

/** Provides the alerts of a request. */
export function alerts(deps: DashboardDeps): MiddlewareHandler<Env> {
  return (c, next) => {
    let found: Promise<Alerts> | undefined
    c.set('alerts', () => {
      found ??= findAlerts(c, deps)
      return found
    })
    return next()
  }
}

async function findAlerts(c: Context<Env>, { health, disk }: DashboardDeps): Promise<Alerts> {
  const failingWebhooks = await findFailingWebhooks(c)
  const { isAdmin } = c.get('user')
  const machine = health.machine()
  const isFailing = machine.state === 'failing'
  const alert = isAdmin && !isFailing ? health.alert() : null
  const isConcerned = /^\/(verify|lists)\b/.test(c.req.path)
  return {
    failingWebhooks,
    needsHealth: isAdmin && (isFailing || alert !== null),
    notices: [
      ...(await diskBanner(c, disk)),
      ...(isConcerned && isFailing ? [machineBanner(machine, isAdmin)] : []),
      ...(isConcerned && alert !== null ? [notice('warn', alert)] : []),
      ...(await webhookAlerts(c, failingWebhooks)),
    ],
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
