import { presentDelivery, presentDetail } from '../../api/webhooks/delivery-view.ts'
import { EvError } from '../../platform/error.ts'
import { sanitizeText } from '../../platform/text.ts'
import { getDelivery } from '../../webhooks/deliveries.ts'
import { deliveryPage } from '../../webhooks/delivery-store.ts'
import type { Webhook } from '../../webhooks/endpoint-store.ts'
import { SENT_KINDS } from '../../webhooks/event.ts'
import type { DeliveryState, DeliveryTable } from '../../webhooks/tables.ts'
import { withAccounts } from '../accounts/lookup.ts'
import type { CliContext } from '../context.ts'
import { databaseName } from '../database.ts'
import { isServed } from '../serve/active-members.ts'
import { readConfig } from '../settings.ts'
import { deliveriesText, deliveryText } from './delivery-text.ts'
import { isDeliveryId, withWebhook } from './lookup.ts'
import { eventsText, printJson } from './print.ts'

export type DeliveriesFlags = {
  readonly status?: DeliveryState
  readonly event?: string
  readonly limit?: string
  readonly json?: boolean
  readonly [setting: string]: unknown
}

/** `ev webhooks deliveries`: gives the code to exit with. */
export function deliveriesCommand(
  context: CliContext,
  id: string,
  delivery: string | undefined,
  flags: DeliveriesFlags,
): Promise<number> {
  if (delivery !== undefined)
    return showDelivery(context, { webhookId: id, deliveryId: delivery }, flags)
  if (isDeliveryId(id)) return showDelivery(context, { webhookId: null, deliveryId: id }, flags)
  return listDeliveries(context, id, flags)
}

function listDeliveries(context: CliContext, id: string, flags: DeliveriesFlags): Promise<number> {
  const max = limitOf(flags.limit)
  const filters = {
    ...(flags.status === undefined ? {} : { status: flags.status }),
    ...(flags.event === undefined ? {} : { event: checkedEvent(flags.event) }),
  }
  const config = readConfig(context, flags)
  return withWebhook(context, config, id, async (database, webhook) => {
    const page = { webhookId: id, ...filters, before: null, max: max + 1 }
    const found = await deliveryPage(database, page)
    const rows = found.slice(0, max)
    if (flags.json)
      printJson(
        context,
        rows.map(row => presentDelivery(row, webhook)),
      )
    else {
      const isFiltered = Object.keys(filters).length > 0
      const log = {
        ...{ webhook, rows, isFiltered, hasMore: found.length > max, place: databaseName(config) },
        isServed: await isServed(database, config, ['serve']),
      }
      const table = rows.length === 0 ? '' : `${deliveriesText(rows, webhook)}\n`
      context.stdout.write(`${table}${logNotes(log)}`)
    }
    return 0
  })
}

function showDelivery(
  context: CliContext,
  given: { webhookId: string | null; deliveryId: string },
  flags: DeliveriesFlags,
): Promise<number> {
  return withAccounts(context, readConfig(context, flags), async database => {
    const { webhook, logged } = await getDelivery({ database }, { ...given, accountId: null })
    const detail = presentDetail(logged, webhook)
    if (flags.json) printJson(context, detail)
    else context.stdout.write(deliveryText(detail, webhook))
    return 0
  })
}

const LIMIT = 20
/** More than anybody reads; all of them come in pages over HTTP. */
const LIMIT_MAX = 1_000

function limitOf(given: string | undefined): number {
  const limit = given === undefined ? LIMIT : Number(given)
  if (Number.isInteger(limit) && limit >= 1 && limit <= LIMIT_MAX) return limit
  throw new EvError(
    'usage',
    `--limit takes a whole number from 1 to ${LIMIT_MAX}, not “${sanitizeText(given ?? '')}”.`,
  )
}

function checkedEvent(given: string) {
  const event = SENT_KINDS.find(kind => kind === given)
  if (event !== undefined) return event
  throw new EvError(
    'usage',
    `There is no event “${sanitizeText(given)}”; there are ${SENT_KINDS.join(', ')}.`,
  )
}

type ShownLog = {
  readonly webhook: Webhook
  readonly rows: readonly DeliveryTable[]
  /** Whether only such of one status or kind were asked for. */
  readonly isFiltered: boolean
  /** Whether there are more than these rows. */
  readonly hasMore: boolean
  /** The data directory or the database. */
  readonly place: string
  /** Whether an “ev serve” is at work there. */
  readonly isServed: boolean
}

/** What stands below the log of a webhook, a line each: why something is not there or waits, and what to do. */
const logNotes = (log: ShownLog): string =>
  [...aboutRows(log), ...aboutWaiting(log)].map(note => `${note}\n`).join('')

function aboutRows({ webhook: { id, ...webhook }, rows, isFiltered, hasMore }: ShownLog): string[] {
  const [first] = rows
  if (first !== undefined) {
    const more = hasMore ? ['There are more before these; --limit says how many are shown.'] : []
    return [...more, `“ev webhooks deliveries ${first.id}” shows the first of them whole.`]
  }
  const none = `There are no${isFiltered ? ' such' : ''} deliveries to ${id}; what ended is kept for seven days.`
  if (isFiltered) return [none]
  return [
    none,
    `It is told of ${eventsText(webhook)}. “ev webhooks test ${id}” sends an event to it now.`,
  ]
}

function aboutWaiting({ webhook, rows, place, isServed }: ShownLog): string[] {
  if (!webhook.active) {
    return [
      `The webhook is off: nothing is sent to it until “ev webhooks enable ${webhook.id}”, and what happens meanwhile is not kept for it.`,
    ]
  }
  if (isServed || !rows.some(isOpen)) return []
  return [
    `No “ev serve” is at work in ${place}: what waits is sent by the next one that is started there.`,
  ]
}

const isOpen = ({ state }: DeliveryTable) => state === 'pending' || state === 'retry_scheduled'
