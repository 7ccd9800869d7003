import { presentDelivery, type presentDetail } from '../../api/webhooks/delivery-view.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { Webhook } from '../../webhooks/endpoint-store.ts'
import type { DeliveryTable } from '../../webhooks/tables.ts'
import { timeText } from '../jobs/time-text.ts'
import { keyValues } from '../key-values.ts'
import { type Column, table } from '../table.ts'

type Delivery = ReturnType<typeof presentDelivery>
type Detail = ReturnType<typeof presentDetail>
type Attempt = Detail['attempts'][number]

/** The log of a webhook, for people. */
export const deliveriesText = (rows: readonly DeliveryTable[], webhook: Webhook): string =>
  table(
    COLUMNS,
    rows.map(row => rowOf(presentDelivery(row, webhook))),
  )

/** One delivery with what was sent and answered, for people. What receivers said is foreign text. */
export function deliveryText(detail: Detail, webhook: Webhook): string {
  const { request, response, attempts } = detail
  return [
    `${detail.id}\n`,
    keyValues([
      ['webhook', detail.webhook_id],
      ['event', `${detail.event} ${detail.event_id}`],
      ['status', statusText(detail, webhook)],
      ['trigger', detail.trigger],
      ['created', when(detail.created_at)],
      ['kept until', detail.expires_at === null ? null : when(detail.expires_at)],
    ]),
    `\nRequest: POST ${sanitizeText(request.url, SHOWN_MAX)}\n`,
    keyValues(Object.entries(request.headers).map(([name, value]) => [`${name}:`, value])),
    `\n  ${sanitizeText(request.body, SHOWN_MAX)}\n`,
    response === null ? '' : responseText(response),
    attempts.length === 0 ? '' : `\n${table(ATTEMPT_COLUMNS, attempts.map(attemptRow))}`,
    detail.status === 'failed' ? `\n${remedyText(detail, webhook)}\n` : '',
  ].join('')
}

/** Enough of a body to see what it is; `--json` has all that is kept. */
const SHOWN_MAX = 4_096

function responseText({ status_code, headers, body }: NonNullable<Detail['response']>): string {
  const named = Object.entries(headers).map(
    ([name, value]) => [`${sanitizeText(name)}:`, sanitizeText(value)] as const,
  )
  const excerpt = body === '' ? '' : `\n  ${sanitizeText(body, SHOWN_MAX)}\n`
  return `\nLast answer: ${status_code}\n${named.length === 0 ? '' : keyValues(named)}${excerpt}`
}

const remedyText = ({ id }: Detail, webhook: Webhook) =>
  webhook.active
    ? `“ev webhooks retry ${id}” sends it once more.`
    : `Its webhook is off: after “ev webhooks enable ${webhook.id}”, “ev webhooks retry ${id}” sends it once more.`

function statusText(detail: Detail, { active }: Webhook): string {
  if (detail.next_attempt_at !== null) {
    return `${detail.status}, the next attempt ${when(detail.next_attempt_at)}`
  }
  const waits = detail.status === 'pending' || detail.status === 'retry_scheduled'
  return waits && !active ? `${detail.status}, until its webhook is switched on` : detail.status
}

const COLUMNS: readonly Column[] = [
  { title: 'ID' },
  { title: 'CREATED' },
  { title: 'EVENT' },
  { title: 'STATUS' },
  { title: 'ATTEMPTS', align: 'right' },
  { title: 'NEXT' },
  { title: 'ANSWER', align: 'right' },
  { title: 'TOOK', align: 'right' },
  { title: 'ERROR' },
]

const rowOf = (delivery: Delivery): string[] => [
  delivery.id,
  when(delivery.created_at),
  delivery.event,
  delivery.status,
  `${delivery.attempt}`,
  delivery.next_attempt_at === null ? '–' : when(delivery.next_attempt_at),
  ...outcome(delivery),
]

const ATTEMPT_COLUMNS: readonly Column[] = [
  { title: 'ATTEMPT', align: 'right' },
  { title: 'TRIGGER' },
  { title: 'STARTED' },
  { title: 'ANSWER', align: 'right' },
  { title: 'TOOK', align: 'right' },
  { title: 'ERROR' },
]

const attemptRow = (attempt: Attempt): string[] => [
  `${attempt.number}`,
  attempt.trigger,
  when(attempt.started_at),
  ...outcome(attempt),
]

const outcome = (of: Pick<Delivery, 'status_code' | 'duration_ms' | 'error'>): string[] => [
  of.status_code === null ? '–' : `${of.status_code}`,
  of.duration_ms === null ? '–' : `${of.duration_ms} ms`,
  // Last, as its width is anybody's.
  of.error === null ? '' : sanitizeText(of.error),
]

const when = (iso: string) => timeText(Date.parse(iso))
