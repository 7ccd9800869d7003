import type { Config } from '../../config/settings.ts'
import type { Database } from '../../db/database.ts'
import { EvError } from '../../platform/error.ts'
import { pluralize } from '../../platform/format.ts'
import { retryDelivery, retryFailedDeliveries } from '../../webhooks/deliveries.ts'
import { presentDelivery } from '../../webhooks/present.ts'
import type { CliContext } from '../context.ts'
import { databaseName, isServed } from '../database.ts'
import { parseSince } from '../flag-values.ts'
import { withAccounts } from '../local/with-accounts.ts'
import { printJson, printText } from '../print.ts'
import { readConfig } from '../settings.ts'
import { urlText } from './print.ts'
import { isDeliveryId } from './webhooks.ts'

export type RetryFlags = {
  readonly since?: string
  readonly json?: boolean
  readonly [setting: string]: unknown
}

/** Runs `ev webhooks retry` and returns the exit code. */
export async function retryCommand(
  context: CliContext,
  target: string,
  delivery: string | undefined,
  flags: RetryFlags,
): Promise<number> {
  if (flags.since !== undefined) {
    if (delivery === undefined && !isDeliveryId(target))
      return recoverCommand(context, target, flags)
    throw new EvError(
      'usage',
      `--since retries all failed deliveries of a webhook. Give only the webhook, as in "ev webhooks retry --since 2d wh_…", or one delivery without --since.`,
    )
  }
  if (delivery !== undefined)
    return retryOne(context, { webhookId: target, deliveryId: delivery }, flags)
  if (isDeliveryId(target)) return retryOne(context, { webhookId: null, deliveryId: target }, flags)
  throw new EvError(
    'usage',
    `Give the ID of a delivery (dlv_…), or retry all failed deliveries of a webhook with --since, as in "ev webhooks retry --since 2d wh_…".`,
  )
}

/** Runs `ev webhooks recover` and `ev webhooks retry --since`, and returns the exit code. */
export function recoverCommand(
  context: CliContext,
  id: string,
  flags: RetryFlags,
): Promise<number> {
  const now = context.clock.now()
  const since = parseSince(flags.since ?? '', now)
  const config = readConfig(context, flags)
  return withAccounts(context, config, async database => {
    const services = { database, clock: context.clock }
    const input = { webhookId: id, accountId: null, since }
    const { webhook, recovered } = await retryFailedDeliveries(services, input)
    if (flags.json) printJson(context, { recovered })
    else if (recovered === 0) printText(context, `No delivery to ${id} has failed since then.\n`)
    else {
      const what = `${pluralize(recovered, 'delivery')} to ${urlText(webhook)}`
      printText(context, `${what} will be sent again${await whenSent(database, config)}\n`)
    }
    return 0
  })
}

function retryOne(
  context: CliContext,
  ids: { webhookId: string | null; deliveryId: string },
  flags: RetryFlags,
): Promise<number> {
  const config = readConfig(context, flags)
  return withAccounts(context, config, async database => {
    const services = { database, clock: context.clock }
    const target = { ...ids, accountId: null }
    const { webhook, delivery } = await retryDelivery(services, target)
    if (flags.json) printJson(context, presentDelivery(delivery, webhook, database.steadyClock))
    else {
      const what = `${delivery.id} (${delivery.kind}) to ${urlText(webhook)}`
      printText(context, `${what} will be sent again${await whenSent(database, config)}\n`)
    }
    return 0
  })
}

/** Returns the end of the sentence. Only the service sends deliveries. */
const whenSent = async (database: Database, config: Config) =>
  (await isServed(database, config, ['serve']))
    ? ', within a second.'
    : `. No "ev serve" is running on ${databaseName(config)}; it is sent when one starts.`
