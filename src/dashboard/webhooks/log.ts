import { createHash } from 'node:crypto'
import type { Context } from 'hono'
import { html } from 'hono/html'
import type { Delivery, DeliveryPage, Webhook } from '../../client/types.ts'
import { formatDuration } from '../../platform/format.ts'
import { SENT_KINDS } from '../../webhooks/event.ts'
import { queryOf } from '../api.ts'
import type { Env } from '../deps.ts'
import { select } from '../page/form.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { part } from '../page/layout.ts'
import { time } from '../page/text.ts'

/** The path of an endpoint in the API. */
export const pathOf = (id: string) => `/v1/webhooks/${encodeURIComponent(id)}`


/** The deliveries of an endpoint, with what they can be filtered by. */
export async function logSection(c: Context<Env>, { id }: Webhook): Promise<Html> {
  const filter = filterOf(c)
  const path = `/webhooks/${id}`
  return html`
    <section>
      <h2>Deliveries</h2>
      <form method="get" action="${path}" class="row" hx-get="${path}" hx-target="#log" hx-swap="${SWAP}"
        hx-trigger="submit, change" hx-push-url="true" hx-sync="#log:queue last">
        ${select({ label: 'State', name: 'status', choices: choicesOf(STATES, filter.status) })}
        ${select({ label: 'Event', name: 'event', choices: choicesOf(KINDS, filter.event) })}
        <button>Show</button>
      </form>
      ${log(id, filter, await deliveriesOf(c, id, filter))}
    </section>`
}

/** Whether htmx asks for the log alone. */
export const isForLog = (c: Context<Env>) =>
  c.req.header('HX-Request') === 'true' && c.req.header('HX-Target') === 'log'

/** The log alone; nothing where it is as the page has it, so that a page at which somebody reads stays as it is. */
export async function logPart(c: Context<Env>, id: string): Promise<Response> {
  const filter = filterOf(c)
  const deliveries = await deliveriesOf(c, id, filter)
  if (c.req.query('seen') === markOf(deliveries)) return c.body(null, 204)
  return part(c, log(id, filter, deliveries))
}

/** Tells the log, by htmx, that there is something new. */
export const CHANGED = 'log-changed'

/** Without a pause in which times would stand there as they came. */
export const SWAP = 'outerHTML settle:0ms'

type Filter = Readonly<Partial<Record<'status' | 'event' | 'cursor', string>>>

function filterOf({ req }: Context<Env>): Filter {
  const given = (name: string) => req.query(name) || undefined
  const all = { status: given('status'), event: given('event'), cursor: given('cursor') }
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined))
}

const deliveriesOf = async (c: Context<Env>, id: string, query: Filter) =>
  (await c.get('api').ask<DeliveryPage>(`${pathOf(id)}/deliveries`, { query })).data

type Deliveries = DeliveryPage['data']

function log(id: string, filter: Filter, deliveries: Deliveries): Html {
  const { items, next_cursor: next } = deliveries
  const again = queryOf({ ...filter, seen: markOf(deliveries) })
  return html`
    <div id="log" hx-get="/webhooks/${id}${again}" hx-trigger="${triggerOf(items)}" hx-swap="${SWAP}">
      ${items.length === 0 ? nothing(filter) : table(id, items)}
      <p class="actions">
        ${filter.cursor === undefined ? NOTHING : html`<a class="button" href="/webhooks/${id}${queryOf({ ...filter, cursor: null })}">The newest</a>`}
        ${next === null ? NOTHING : html`<a class="button" href="/webhooks/${id}${queryOf({ ...filter, cursor: next })}">Older ones</a>`}
      </p>
    </div>`
}

/** What is under way is looked at again and again; else it is enough to hear of what is done here. */
const triggerOf = (items: readonly Delivery[]) =>
  items.some(isUnderWay) ? `every 5s, ${CHANGED} from:body` : `${CHANGED} from:body`

export const isUnderWay = ({ status, next_attempt_at: next }: Delivery) =>
  next !== null && (status === 'pending' || status === 'retry_scheduled')

function markOf({ items, next_cursor }: Deliveries): string {
  const text = JSON.stringify([next_cursor, items.map(one => [one.id, one.status, one.attempt])])
  return createHash('sha256').update(text).digest('hex').slice(0, MARK_LENGTH)
}

const MARK_LENGTH = 16

const nothing = (filter: Filter): Html =>
  Object.keys(filter).length > 0
    ? html`<p>No delivery is so. The log keeps what is over for seven days.</p>`
    : html`<p>Nothing was sent to it yet. Send a test event, or wait until one happens that it subscribed to; what was
        sent stands here for seven days, with what was answered.</p>`

const table = (id: string, items: readonly Delivery[]): Html => html`
  <div class="scroll"><table>
    <caption class="unseen">Deliveries, the newest first</caption>
    <thead><tr>
      <th scope="col">Event</th><th scope="col">When</th><th scope="col">State</th>
      <th scope="col" class="number">Attempts</th><th scope="col">Answer</th>
    </tr></thead>
    <tbody>${items.map(
      one => html`
        <tr>
          <th scope="row"><a id="${one.id}" href="/webhooks/${id}/deliveries/${one.id}">${one.event}</a>
            ${one.trigger === 'scheduled' ? NOTHING : html`<small>${TRIGGERS[one.trigger]}</small>`}</th>
          <td>${time(one.created_at)}</td>
          <td>${stateOf(one)}</td>
          <td class="number">${one.attempt}</td>
          <td>${answerOf(one)}</td>
        </tr>`,
    )}</tbody>
  </table></div>`

export const TRIGGERS: Readonly<Record<Delivery['trigger'], string>> = {
  scheduled: 'as it happened',
  manual: 'asked for once more',
  test: 'a test',
}

/** How a delivery stands, and when it goes on. */
export function stateOf({ status, next_attempt_at: next }: Delivery): Html {
  const { tone, word } = WORDS[status]
  return html`<span class="badge is-${tone}">${word}</span>
    ${status === 'retry_scheduled' && next !== null ? html`<small>next try ${time(next)}</small>` : NOTHING}
    ${next === null && (status === 'pending' || status === 'retry_scheduled') ? html`<small>waits: the webhook is off</small>` : NOTHING}`
}

const WORDS: Readonly<Record<Delivery['status'], { tone: string; word: string }>> = {
  pending: { tone: 'info', word: 'on its way' },
  delivered: { tone: 'ok', word: 'delivered' },
  retry_scheduled: { tone: 'warn', word: 'failed, is tried again' },
  failed: { tone: 'bad', word: 'given up' },
}

/** What is wrong with a status is told by the page of the delivery: it would be said in each row. */
const answerOf = ({ status_code, duration_ms, error }: Delivery): Html => html`
  ${status_code === null ? NOTHING : html`<span title="${error ?? ''}">${status_code}</span>`}
  ${duration_ms === null ? NOTHING : html`<small>${formatDuration(duration_ms)}</small>`}
  ${error === null || status_code !== null ? NOTHING : html`<br /><small>${error}</small>`}`

const KINDS = [['', 'All'], ...SENT_KINDS.map(kind => [kind, kind] as const)] as const
const STATES = [
  ['', 'All'],
  ...Object.entries(WORDS).map(([status, { word }]) => [status, word] as const),
] as const

const choicesOf = (choices: readonly (readonly [string, string])[], chosen: string | undefined) =>
  choices.map(([value, label]) => ({ value, label, checked: value === (chosen ?? '') }))
