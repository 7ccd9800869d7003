import { type Command, Option } from 'commander'
import type { Delivery, DeliveryAttempt, DeliveryDetail } from '../../client/types.ts'
import { EvError } from '../../platform/error.ts'
import { formatNumber } from '../../platform/format.ts'
import { omitUndefined } from '../../platform/omit-undefined.ts'
import { sanitizeText } from '../../platform/text.ts'
import { SENT_KINDS } from '../../webhooks/event-types.ts'
import type { CliContext } from '../context.ts'
import { type DataFlags, worksOnData } from '../data-command.ts'
import { parseInteger } from '../flag-values.ts'
import { printJson, timeText } from '../print.ts'
import type { DeliveryTarget, OwnedWebhook } from '../remote/webhooks.ts'
import { type Column, keyValues, table } from '../table.ts'
import { widthOf, wrapLines } from '../width.ts'
import { isDeliveryId, openWebhooks } from './backend.ts'
import { eventsText } from './print.ts'

export function addDeliveries(webhooks: Command, context: CliContext): void {
  const deliveries = webhooks
    .command('deliveries')
    .description('list deliveries to a webhook, or show one with its attempts')
    .argument('<webhook>', 'ID of the webhook or of a delivery')
    .argument('[delivery]', 'ID of the delivery')
    .addOption(
      new Option('--status <status>', 'only deliveries with this status').choices([
        ...['pending', 'delivered', 'retry_scheduled', 'failed'],
      ]),
    )
    .option('--event <event>', 'only deliveries of this event, such as batch.completed')
    .option(
      '--search <text>',
      'only deliveries with this text in the body, ID, status code or error',
    )
    .option('--limit <n>', 'number of deliveries, up to 1000 (default: 20)')
    .option('--json', 'print JSON: an array of objects; for one delivery, one object')
    .addHelpText(
      'after',
      `
Examples:
  ev webhooks deliveries wh_4kq2
  ev webhooks deliveries wh_4kq2 --status failed --limit 100
  ev webhooks deliveries dlv_7ab1`,
    )
    .action((id: string, delivery: string | undefined, flags) =>
      deliveriesCommand(context, id, delivery, flags),
    )
  worksOnData(deliveries, context)
}

type DeliveriesFlags = DataFlags & {
  readonly status?: Delivery['status']
  readonly event?: string
  readonly search?: string
  readonly limit?: string
}

async function deliveriesCommand(
  context: CliContext,
  id: string,
  delivery: string | undefined,
  flags: DeliveriesFlags,
): Promise<void> {
  if (delivery !== undefined)
    return showDelivery(context, { webhookId: id, deliveryId: delivery }, flags)
  if (isDeliveryId(id)) return showDelivery(context, { webhookId: null, deliveryId: id }, flags)
  return listDeliveries(context, id, flags)
}

async function listDeliveries(
  context: CliContext,
  id: string,
  flags: DeliveriesFlags,
): Promise<void> {
  const max = parseInteger('--limit', flags.limit ?? `${LIMIT}`, [1, LIMIT_MAX])
  const { status, event } = flags
  const filters = omitUndefined({
    status,
    event: event === undefined ? undefined : parseEvent(event),
  })
  const backend = await openWebhooks(context, flags)
  const webhook = await backend.get(id)
  const search = flags.search?.trim() ?? ''
  const { deliveries: rows, hasMore } = await backend.deliveries(id, { ...filters, search, max })
  if (flags.json) printJson(context, rows)
  else {
    const isFiltered = Object.keys(filters).length > 0 || flags.search !== undefined
    const isServed = await backend.isServed()
    const log = { webhook, rows, isFiltered, hasMore, location: backend.location, isServed }
    const width = widthOf(context, context.stdout)
    const text = rows.length === 0 ? '' : `${table(COLUMNS, rows.map(rowOf), width)}\n`
    context.stdout.write(`${text}${wrapLines(logNotes(log), width)}`)
  }
}

async function showDelivery(
  context: CliContext,
  target: DeliveryTarget,
  flags: DeliveriesFlags,
): Promise<void> {
  const { webhook, delivery } = await (await openWebhooks(context, flags)).delivery(target)
  if (flags.json) printJson(context, delivery)
  else context.stdout.write(deliveryText(delivery, webhook, widthOf(context, context.stdout)))
}

const LIMIT = 20
/** More than fits a terminal; the HTTP API pages through all deliveries. */
const LIMIT_MAX = 1_000

function parseEvent(value: string) {
  const event = SENT_KINDS.find(kind => kind === value)
  if (event !== undefined) return event
  throw new EvError(
    'usage',
    `Unknown event "${sanitizeText(value)}". Events: ${SENT_KINDS.join(', ')}.`,
  )
}

type DeliveryLog = {
  readonly webhook: OwnedWebhook
  readonly rows: readonly Delivery[]
  /** Whether the rows are filtered by status or event. */
  readonly isFiltered: boolean
  /** Whether there are more rows than these. */
  readonly hasMore: boolean
  /** The data directory or the database, for messages. */
  readonly location: string
  /** Whether a service is running on the database. */
  readonly isServed: boolean
}

/** Formats the notes below the deliveries of a webhook: why there are none, or why they wait. */
const logNotes = (log: DeliveryLog): string =>
  [...rowNotes(log), ...pendingNotes(log)].map(note => `${note}\n`).join('')

function rowNotes({
  webhook: { id, ...webhook },
  rows,
  isFiltered,
  hasMore,
}: DeliveryLog): string[] {
  const [first] = rows
  if (first !== undefined) {
    const more = hasMore ? ['Older deliveries are not shown. To show more, set --limit.'] : []
    return [...more, `To show one with its attempts, run "ev webhooks deliveries ${first.id}".`]
  }
  const none = `No${isFiltered ? ' matching' : ''} deliveries to ${id}. Completed deliveries are kept for seven days.`
  if (isFiltered) return [none]
  return [
    none,
    `It receives ${eventsText(webhook)}. To send a test event, run "ev webhooks test ${id}".`,
  ]
}

function pendingNotes({ webhook, rows, location, isServed }: DeliveryLog): string[] {
  if (!webhook.active) {
    return [
      `The webhook is disabled: nothing is sent to it, and new events are not stored for it. To enable it, run "ev webhooks enable ${webhook.id}".`,
    ]
  }
  if (isServed || !rows.some(isPending)) return []
  return [`No "ev serve" is running on ${location}. Pending deliveries are sent when one starts.`]
}

const isPending = ({ status }: Delivery) => status === 'pending' || status === 'retry_scheduled'

/** Formats one delivery with its request and response. The response is untrusted text. */
function deliveryText(detail: DeliveryDetail, webhook: OwnedWebhook, width: number | null): string {
  const { request, response, attempts } = detail
  return [
    `${detail.id}\n`,
    keyValues(
      [
        ['webhook', detail.webhook_id],
        ['event', `${detail.event} ${detail.event_id}`],
        ['status', statusText(detail, webhook)],
        ['trigger', detail.trigger],
        ['created', when(detail.created_at)],
        ['kept until', detail.expires_at === null ? null : when(detail.expires_at)],
      ],
      { width },
    ),
    `\nRequest: POST ${sanitizeText(request.url, SHOWN_MAX)}\n`,
    keyValues(
      Object.entries(request.headers).map(([name, value]) => [`${name}:`, value]),
      { width },
    ),
    `\n  ${sanitizeText(request.body, SHOWN_MAX)}\n`,
    response === null ? '' : responseText(response, width),
    attempts.length === 0 ? '' : `\n${table(ATTEMPT_COLUMNS, attempts.map(attemptRow), width)}`,
    detail.status === 'failed' ? `\n${remedyText(detail, webhook)}\n` : '',
  ].join('')
}

/** Maximum number of characters shown of a body; `--json` has all that is stored. */
const SHOWN_MAX = 4_096

function responseText(
  { status_code, headers, body }: NonNullable<DeliveryDetail['response']>,
  width: number | null,
): string {
  const named = Object.entries(headers).map(
    ([name, value]) => [`${sanitizeText(name)}:`, sanitizeText(value)] as const,
  )
  const excerpt = body === '' ? '' : `\n  ${sanitizeText(body, SHOWN_MAX)}\n`
  return `\nLast response: ${status_code}\n${named.length === 0 ? '' : keyValues(named, { width })}${excerpt}`
}

const remedyText = ({ id }: DeliveryDetail, webhook: OwnedWebhook) =>
  webhook.active
    ? `To send it again, run "ev webhooks retry ${id}".`
    : `Its webhook is disabled. To send it again, run "ev webhooks enable ${webhook.id}", then "ev webhooks retry ${id}".`

function statusText(detail: DeliveryDetail, { active }: OwnedWebhook): string {
  if (detail.next_attempt_at !== null) {
    return `${detail.status}, next attempt ${when(detail.next_attempt_at)}`
  }
  const waits = detail.status === 'pending' || detail.status === 'retry_scheduled'
  return waits && !active ? `${detail.status}, until its webhook is enabled` : detail.status
}

const COLUMNS: readonly Column[] = [
  { title: 'ID' },
  { title: 'CREATED', dropRank: 3 },
  { title: 'EVENT' },
  { title: 'STATUS' },
  { title: 'ATTEMPTS', align: 'right', dropRank: 4 },
  { title: 'NEXT', dropRank: 2 },
  { title: 'RESPONSE', align: 'right', dropRank: 5 },
  { title: 'TOOK', align: 'right', dropRank: 1 },
  { title: 'ERROR' },
]

const rowOf = (delivery: Delivery): string[] => [
  delivery.id,
  when(delivery.created_at),
  delivery.event,
  delivery.status,
  formatNumber(delivery.attempt),
  delivery.next_attempt_at === null ? '–' : when(delivery.next_attempt_at),
  ...outcome(delivery),
]

const ATTEMPT_COLUMNS: readonly Column[] = [
  { title: 'ATTEMPT', align: 'right' },
  { title: 'TRIGGER', dropRank: 1 },
  { title: 'STARTED' },
  { title: 'RESPONSE', align: 'right', dropRank: 5 },
  { title: 'TOOK', align: 'right', dropRank: 1 },
  { title: 'ERROR' },
]

const attemptRow = (attempt: DeliveryAttempt): string[] => [
  formatNumber(attempt.number),
  attempt.trigger,
  when(attempt.started_at),
  ...outcome(attempt),
]

const outcome = (of: Pick<Delivery, 'status_code' | 'duration_ms' | 'error'>): string[] => [
  of.status_code === null ? '–' : `${of.status_code}`,
  of.duration_ms === null ? '–' : `${formatNumber(of.duration_ms)} ms`,
  // The last column, because its width is not limited.
  of.error === null ? '' : sanitizeText(of.error),
]

const when = (iso: string) => timeText(Date.parse(iso))
