import type { Webhook } from '../../webhooks/endpoint-store.ts'
import type { DeliveryTable } from '../../webhooks/tables.ts'
import { eventsText } from './print.ts'

export type ShownLog = {
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
export const logNotes = (log: ShownLog): string =>
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
