import { createHash } from 'node:crypto'
import { type Context, Hono } from 'hono'
import { html } from 'hono/html'
import type {
  DeliveryAttempt,
  DeliveryDetail,
  DeliveryDetailAnswer,
  Webhook,
  WebhookAnswer,
} from '../../client/types.ts'
import { formatDuration } from '../../platform/format.ts'
import { queryOf } from '../api.ts'
import type { Env } from '../deps.ts'
import { form } from '../page/form.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { page, part } from '../page/layout.ts'
import { notice } from '../page/notice.ts'
import { time } from '../page/text.ts'
import { leaveNote } from '../session/cookie.ts'
import { may } from '../session/signed-in.ts'
import { pathOf } from './endpoint.ts'
import { isUnderWay, SWAP, stateOf, TRIGGERS } from './log.ts'
import { answered } from './test-outcome.ts'

/** One delivery: what was sent, what was answered each time, and sending it once more. */
export function deliveryRoutes(): Hono<Env> {
  return new Hono<Env>()
    .get('/webhooks/:id/deliveries/:delivery', async c => {
      const { id, delivery } = c.req.param()
      const api = c.get('api')
      const { data } = await api.ask<DeliveryDetailAnswer>(deliveryPath(id, delivery))
      if (c.req.header('HX-Request') === 'true') {
        return c.req.query('seen') === markOf(data) ? c.body(null, 204) : part(c, history(c, data))
      }
      const { data: webhook } = await api.ask<WebhookAnswer>(pathOf(id))
      return deliveryPage(c, webhook, data)
    })
    .post('/webhooks/:id/deliveries/:delivery/retry', async c => {
      const { id, delivery } = c.req.param()
      await c.get('api').ask(`${deliveryPath(id, delivery)}/retry`, { method: 'POST' })
      leaveNote(c, 'It is sent once more, with six attempts anew.')
      return c.redirect(
        `/webhooks/${encodeURIComponent(id)}/deliveries/${encodeURIComponent(delivery)}`,
        303,
      )
    })
}

const deliveryPath = (id: string, delivery: string) =>
  `${pathOf(id)}/deliveries/${encodeURIComponent(delivery)}`

const deliveryPage = (c: Context<Env>, webhook: Webhook, detail: DeliveryDetail) =>
  page(c, {
    title: `Delivery of ${detail.event}`,
    actions: retryButton(c, webhook, detail),
    body: html`
      <p>To <a href="/webhooks/${webhook.id}">${webhook.url}</a>. The event has the ID <code>${detail.event_id}</code>, the
        same at each attempt.</p>
      ${webhook.active ? NOTHING : notice('warn', 'The webhook is switched off, so nothing is sent to it. Switch it on first.')}
      ${history(c, detail)}
      ${request(detail)}`,
  })

const retryButton = (c: Context<Env>, { id, active }: Webhook, detail: DeliveryDetail): Html =>
  may(c.get('user'), 'webhooks:write') && active
    ? form(
        c,
        `/webhooks/${id}/deliveries/${detail.id}/retry`,
        html`<button class="primary">Send it once more</button>`,
      )
    : NOTHING

/** How far it is, and its attempts: what changes while it is under way. */
function history(c: Context<Env>, detail: DeliveryDetail): Html {
  const chosen = Number(c.req.query('attempt'))
  const shown = detail.attempts.find(({ number }) => number === chosen) ?? detail.attempts.at(-1)
  const path = `/webhooks/${detail.webhook_id}/deliveries/${detail.id}`
  const again = queryOf({ attempt: c.req.query('attempt'), seen: markOf(detail) })
  const live = html`hx-get="${path}${again}" hx-trigger="every 5s" hx-swap="${SWAP}"`
  return html`
    <div id="course" ${isUnderWay(detail) ? live : NOTHING}>
      <dl class="figures">
        <div><dt>State</dt><dd>${stateOf(detail)}</dd></div>
        <div><dt>Happened</dt><dd>${time(detail.created_at)}</dd></div>
        <div><dt>Attempts of this round</dt><dd>${detail.attempt}</dd></div>
        ${detail.expires_at === null ? NOTHING : html`<div><dt>Kept until</dt><dd>${time(detail.expires_at)}</dd></div>`}
      </dl>
      <h2>Attempts</h2>
      ${shown === undefined ? html`<p>None was made yet.</p>` : html`${attempts(path, detail, shown)} ${attempt(shown)}`}
    </div>`
}

function markOf({ status, attempt, attempts, next_attempt_at }: DeliveryDetail): string {
  const text = JSON.stringify([status, attempt, attempts.at(-1)?.number, next_attempt_at])
  return createHash('sha256').update(text).digest('hex').slice(0, MARK_LENGTH)
}

const MARK_LENGTH = 16

const attempts = (path: string, detail: DeliveryDetail, shown: DeliveryAttempt): Html => html`
  <div class="scroll"><table>
    <caption class="unseen">Attempts, the last first</caption>
    <thead><tr>
      <th scope="col">Attempt</th><th scope="col">When</th><th scope="col">Why</th><th scope="col">What came of it</th>
    </tr></thead>
    <tbody>${detail.attempts.toReversed().map(
      one => html`
        <tr>
          <th scope="row"><a id="attempt-${one.number}" href="${path}?attempt=${one.number}"
            ${one === shown ? html`aria-current="true"` : NOTHING}>${one.number}</a></th>
          <td>${time(one.started_at)}</td>
          <td>${TRIGGERS[one.trigger]}</td>
          <td>${answered(one)}${one.error === null ? NOTHING : html` <small>${one.error}</small>`}</td>
        </tr>`,
    )}</tbody>
  </table></div>`

/** One attempt whole. Only one is, as each may have kilobytes. */
const attempt = (one: DeliveryAttempt): Html => html`
  <section class="card">
    <h3>Attempt ${one.number}: ${answered(one)}</h3>
    ${one.error === null ? NOTHING : html`<p>${one.error}</p>`}
    <p><small>Sent to ${one.url}, ${time(one.started_at)}; it took ${formatDuration(one.duration_ms)}.</small></p>
    ${one.response_headers === null ? NOTHING : html`<h4>Headers of the answer</h4><pre>${headersText(one.response_headers)}</pre>`}
    ${
      one.response_excerpt === null
        ? NOTHING
        : html`<h4>The answer, or its beginning</h4>
            <pre>${one.response_excerpt === '' ? '(without a body)' : one.response_excerpt}</pre>`
    }
  </section>`

const request = ({ request: { url, headers, body } }: DeliveryDetail): Html => html`
  <h2>What is sent</h2>
  <pre>POST ${url}
${headersText(headers)}</pre>
  <pre>${pretty(body)}</pre>
  <p><small>The body is shown with line breaks; it is sent and signed without. Signatures are not shown.</small></p>`

const headersText = (headers: Readonly<Record<string, string>>) =>
  Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n')

/** JSON for people; other text as it is. */
function pretty(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), null, 2)
  } catch {
    return body
  }
}
