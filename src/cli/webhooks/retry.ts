import { EvError } from '../../base/error.ts'
import { pluralize } from '../../base/format.ts'
import type { Config } from '../../config/settings.ts'
import { presentDelivery } from '../../http/webhooks/delivery/present.ts'
import { type Database, write, writeBeside } from '../../store/database.ts'
import { recoverDeliveries, retryDelivery } from '../../store/event/deliveries.ts'
import type { Webhook } from '../../store/event/webhooks.ts'
import { isServed } from '../cluster/at-work.ts'
import type { CliContext } from '../context.ts'
import { placeName } from '../database.ts'
import { sinceOf } from '../keys/times.ts'
import { readConfig } from '../settings/settings.ts'
import { isDeliveryId, noSuchDelivery, withDelivery, withWebhook } from './chosen.ts'
import { printJson, urlText } from './print.ts'

export type RetryFlags = {
  readonly since?: string
  readonly json?: boolean
  readonly [setting: string]: unknown
}

/** `ev webhooks retry`: gives the code to exit with. */
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
      `--since sends all once more that failed at a webhook: name the webhook alone, as in “ev webhooks retry --since 2d wh_…”, or one delivery without --since.`,
    )
  }
  if (delivery !== undefined) return retryOne(context, { webhook: target, delivery }, flags)
  if (isDeliveryId(target))
    return retryOne(context, { webhook: undefined, delivery: target }, flags)
  throw new EvError(
    'usage',
    `Say what is to be sent once more: the ID of a delivery (dlv_…), or all of a webhook that failed since a time, as in “ev webhooks retry --since 2d wh_…”.`,
  )
}

/** `ev webhooks recover`, and `retry --since`: gives the code to exit with. */
export function recoverCommand(
  context: CliContext,
  id: string,
  flags: RetryFlags,
): Promise<number> {
  const now = context.clock.now()
  const since = sinceOf(flags.since ?? '', now)
  const config = readConfig(context, flags)
  return withWebhook(context, config, id, async (database, webhook) => {
    refuseOff(webhook)
    const recovered = await writeBeside(database, trx => recoverDeliveries(trx, id, { since, now }))
    if (flags.json) printJson(context, { recovered })
    else if (recovered === 0) context.stdout.write(`Nothing to ${id} failed since then.\n`)
    else {
      const what = `${pluralize(recovered, 'delivery')} to ${urlText(webhook)}`
      context.stdout.write(`${what} will be sent once more${await whenSent(database, config)}\n`)
    }
    return 0
  })
}

function retryOne(
  context: CliContext,
  given: { webhook: string | undefined; delivery: string },
  flags: RetryFlags,
): Promise<number> {
  const config = readConfig(context, flags)
  return withDelivery(context, config, given, async (database, { webhook, logged }) => {
    refuseOff(webhook)
    const { id } = logged.delivery
    const now = context.clock.now()
    const row = await write(database, trx => retryDelivery(trx, webhook.id, id, now))
    if (row === null) throw noSuchDelivery(id, webhook)
    if (flags.json) printJson(context, presentDelivery(row, webhook))
    else {
      const what = `${id} (${row.kind}) to ${urlText(webhook)}`
      context.stdout.write(`${what} will be sent once more${await whenSent(database, config)}\n`)
    }
    return 0
  })
}

function refuseOff({ id, active }: Webhook): void {
  if (active) return
  throw new EvError(
    'usage',
    `The webhook ${id} is switched off, so nothing is sent to it. Switch it on first: “ev webhooks enable ${id}”.`,
  )
}

/** Deliveries are carried by the service alone. */
const whenSent = async (database: Database, config: Config) =>
  (await isServed(database, config, ['serve']))
    ? ', within a second.'
    : `; no “ev serve” is at work in ${placeName(config)}, and the next one that is started there sends it.`
