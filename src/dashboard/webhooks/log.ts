import { createHash } from 'node:crypto'
import type { Context } from 'hono'
import { html } from 'hono/html'
import type { Delivery, DeliveryPage, Webhook } from '../../client/types.ts'
import { formatDuration } from '../../platform/format.ts'
import { SENT_KINDS } from '../../webhooks/event-types.ts'
import { queryOf } from '../api.ts'
import type { Env } from '../deps.ts'
import { field, filterSelect, type QueryFilter, readFilter } from '../page/form.ts'
import { type Html, isHtmx, NOTHING } from '../page/html.ts'
import { part } from '../page/layout.ts'
import { pageLinks } from '../page/parts.ts'
import { table } from '../page/table.ts'
import { ago, statusBadge, type Tone, time } from '../page/text.ts'

/** Returns the API path of an endpoint. */
export const pathOf = (id: string) => `/v1/webhooks/${encodeURIComponent(id)}`

/** Returns the path of its page. */
export const pagePath = (id: string) => `/webhooks/${encodeURIComponent(id)}`

/** Renders the deliveries of an endpoint with their filter form. */
export async function logSection(c: Context<Env>, { id }: Webhook): Promise<Html> {
  const filter = readFilter(c, FILTERS)
  const path = `/webhooks/${id}`
  return html`
    <section>
      <h2>Deliveries</h2>
      <form method="get" action="${path}" class="row" hx-get="${path}" hx-target="#log" hx-swap="${SWAP}"
        hx-trigger="submit, change" hx-push-url="true" hx-sync="#log:queue last">
        ${field({ label: 'Search', name: 'search', type: 'search', value: filter.search ?? '', placeholder: 'ID, body or error' })}
        ${filterSelect('Status', 'status', STATES, filter.status)}
        ${filterSelect(
          'Event',
          'event',
          SENT_KINDS.map(kind => [kind, kind]),
          filter.event,
        )}
        <button>Show</button>
      </form>
      ${log(id, filter, await deliveriesOf(c, id, filter))}
    </section>`
}

/** Returns whether htmx requests only the log. */
export const isForLog = (c: Context<Env>) => isHtmx(c) && c.req.header('HX-Target') === 'log'

/** Renders only the log; 204 if it is unchanged, so the page is not redrawn while it is read. */
export async function logPart(c: Context<Env>, id: string): Promise<Response> {
  const filter = readFilter(c, FILTERS)
  const deliveries = await deliveriesOf(c, id, filter)
  if (c.req.query('seen') === versionOf(deliveries)) return c.body(null, 204)
  return part(c, log(id, filter, deliveries))
}

/** The htmx event that refreshes the log. */
export const CHANGED = 'log-changed'

/** No settle delay, during which times would be shown in UTC. */
export const SWAP = 'outerHTML settle:0ms'

const FILTERS = ['status', 'event', 'search', 'cursor'] as const

type Filter = QueryFilter<(typeof FILTERS)[number]>

const deliveriesOf = async (c: Context<Env>, id: string, query: Filter) =>
  (await c.get('api').ask<DeliveryPage>(`${pathOf(id)}/deliveries`, { query })).data

type Deliveries = DeliveryPage['data']

function log(id: string, filter: Filter, deliveries: Deliveries): Html {
  const { items, next_cursor: next } = deliveries
  const query = queryOf({ ...filter, seen: versionOf(deliveries) })
  return html`
    <div id="log" hx-get="/webhooks/${id}${query}" hx-trigger="${triggerOf(items)}" hx-swap="${SWAP}">
      ${items.length === 0 ? noDeliveries(filter) : deliveriesTable(id, items)}
      ${pageLinks({
        cursor: filter.cursor,
        next,
        urlAt: cursor => `/webhooks/${id}${queryOf({ ...filter, cursor })}`,
      })}
    </div>`
}

/** Polls while a delivery is pending; otherwise refreshes only after an action on the page. */
const triggerOf = (items: readonly Delivery[]) =>
  items.some(isPending) ? `every 5s, ${CHANGED} from:body` : `${CHANGED} from:body`

/** Returns whether another attempt is scheduled. */
export const isPending = ({ status, next_attempt_at: next }: Delivery) =>
  next !== null && (status === 'pending' || status === 'retry_scheduled')

const versionOf = ({ items, next_cursor }: Deliveries): string =>
  hashVersion([next_cursor, items.map(one => [one.id, one.status, one.attempt])])

/** Returns a hash of what a part of the page shows: the browser requests only another version. */
export const hashVersion = (shown: unknown): string =>
  createHash('sha256').update(JSON.stringify(shown)).digest('hex').slice(0, VERSION_LENGTH)

const VERSION_LENGTH = 16

const noDeliveries = (filter: Filter): Html =>
  Object.keys(filter).length > 0
    ? html`<p>No matching deliveries. Completed deliveries are kept for seven days.</p>`
    : html`<p>No deliveries yet. Send a test event, or wait for an event that the webhook subscribes to. Deliveries are
        listed here for seven days with the response of the receiver.</p>`

const deliveriesTable = (id: string, items: readonly Delivery[]): Html =>
  table({
    caption: 'Deliveries, newest first',
    columns: [
      {
        label: 'Event',
        kind: 'name',
        cell: one =>
          html`<a id="${one.id}" href="/webhooks/${id}/deliveries/${one.id}">${one.event}</a>
            ${one.trigger === 'scheduled' ? NOTHING : html`<small>${TRIGGERS[one.trigger]}</small>`}`,
      },
      { label: 'Time', cell: one => ago(one.created_at) },
      { label: 'Status', cell: stateOf },
      { label: 'Attempts', kind: 'number', cell: one => one.attempt },
      { label: 'Response', cell: answerOf },
    ],
    rows: items,
  })

export const TRIGGERS: Readonly<Record<Delivery['trigger'], string>> = {
  scheduled: 'Scheduled',
  manual: 'Resent',
  test: 'Test',
}

/** Renders the state of a delivery and its next attempt. */
export function stateOf({ status, next_attempt_at: next }: Delivery): Html {
  const { tone, label } = STATE_BADGES[status]
  return html`${statusBadge(tone, label)}
    ${status === 'retry_scheduled' && next !== null ? html`<small>next attempt ${time(next)}</small>` : NOTHING}
    ${next === null && (status === 'pending' || status === 'retry_scheduled') ? html`<small>waiting: the webhook is disabled</small>` : NOTHING}`
}

const STATE_BADGES: Readonly<Record<Delivery['status'], { tone: Tone; label: string }>> = {
  pending: { tone: 'info', label: 'Pending' },
  delivered: { tone: 'ok', label: 'Delivered' },
  retry_scheduled: { tone: 'warn', label: 'Retry scheduled' },
  failed: { tone: 'bad', label: 'Failed' },
}

/** Renders the response. The error of an HTTP status is in the tooltip and on the delivery page. */
const answerOf = ({ status_code, duration_ms, error }: Delivery): Html => html`
  ${status_code === null ? NOTHING : html`<span title="${error ?? ''}">${status_code}</span>`}
  ${duration_ms === null ? NOTHING : html`<small>${formatDuration(duration_ms)}</small>`}
  ${error === null || status_code !== null ? NOTHING : html`<br /><small>${error}</small>`}`

const STATES = Object.entries(STATE_BADGES).map(([status, { label }]) => [status, label] as const)
