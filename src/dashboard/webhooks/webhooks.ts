import { createHash } from 'node:crypto'
import { type Context, Hono } from 'hono'
import { html } from 'hono/html'
import type {
  CreatedWebhook,
  DeliveryAttempt,
  DeliveryDetail,
  DeliveryDetailAnswer,
  EventList,
  Webhook,
  WebhookAnswer,
  WebhookList,
} from '../../client/types.ts'
import { formatDuration } from '../../platform/format.ts'
import { type ApiProblem, queryOf } from '../api.ts'
import type { DashboardDeps, Env } from '../deps.ts'
import { form, nonceField, problemWith, readNonce, sentForm } from '../page/form.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { page, part } from '../page/layout.ts'
import { empty, notice } from '../page/notice.ts'
import { time } from '../page/text.ts'
import { leaveNote } from '../session/cookie.ts'
import { may } from '../session/signed-in.ts'
import { actionRoutes } from './actions.ts'
import { endpointRoutes, renderBadge } from './endpoint.ts'
import { pathOf, isUnderWay, SWAP, stateOf, TRIGGERS } from './log.ts'
import { bodyOf, type Draft, draftOf, endpointFields } from './endpoint-form.ts'
import { secretPage } from './secret.ts'
import { answered } from './test-outcome.ts'

/** Where an account wants to be told of events, and what was sent there. */
export function webhooksRoutes(deps: DashboardDeps): Hono<Env> {
  const router = new Hono<Env>()
  router.route('/', listRoutes(deps))
  // Before the endpoints by their IDs, as it looks like one.
  router.route('/', createRoutes(deps))
  router.route('/', endpointRoutes(deps))
  router.route('/', actionRoutes(deps))
  router.route('/', deliveryRoutes())
  return router
}

/** All endpoints, or what they are good for where there is none. */
function listRoutes({ settings }: DashboardDeps): Hono<Env> {
  return new Hono<Env>().get('/webhooks', async c => {
    const { data } = await c.get('api').ask<WebhookList>('/v1/webhooks')
    const isEmpty = data.total === 0
    const body = isEmpty ? await hint(c, settings.baseUrl) : table(data.webhooks)
    return page(c, { title: 'Webhooks', body, actions: isEmpty ? NOTHING : newButton(c) })
  })
}

const newButton = (c: Context<Env>): Html =>
  may(c.get('user'), 'webhooks:write')
    ? html`<a class="button primary" href="/webhooks/new">New webhook</a>`
    : html`<small>Your key may look, but not make webhooks: it lacks the scope “webhooks:write”.</small>`

const table = (webhooks: readonly Webhook[]): Html => html`
  <div class="scroll"><table>
    <caption class="unseen">Webhooks of this account, the oldest first</caption>
    <thead><tr>
      <th scope="col">Receiver</th><th scope="col">State</th><th scope="col">Events</th><th scope="col">Created</th>
    </tr></thead>
    <tbody>${webhooks.map(row)}</tbody>
  </table></div>`

const row = (webhook: Webhook): Html => html`
  <tr>
    <th scope="row"><a href="/webhooks/${webhook.id}">${webhook.url}</a>
      ${webhook.description === null ? NOTHING : html`<br /><small>${webhook.description}</small>`}</th>
    <td>${renderBadge(webhook)}</td>
    <td>${webhook.events.map(event => html`<code>${event}</code> `)}</td>
    <td>${time(webhook.created_at)}</td>
  </tr>`

/** Who has no webhook sees what one would get. */
async function hint(c: Context<Env>, baseUrl: string): Promise<Html> {
  const { data } = await c.get('api').ask<EventList>('/v1/webhooks/events')
  const example = JSON.stringify(data.events[0]?.example, null, 2)
  return html`
    ${empty({
      title: 'No webhooks yet',
      text: 'A webhook tells a program of yours what happened, such as a list that is finished, by a POST to an address that you name. Nobody has to ask again and again.',
      action: newButton(c),
    })}
    <h2>What your program gets</h2>
    <p>A request such as this one, signed with a secret that only you and ev know. Whatever is not answered with 2xx is sent
      again, up to five times.</p>
    <pre>${example}</pre>
    <h2>From a program</h2>
    <pre>curl -X POST ${baseUrl}/v1/webhooks -H "Authorization: Bearer $EV_API_KEY" \\
  -H "Content-Type: application/json" \\
  -d '{"url": "https://app.example.com/hook", "events": ["batch.completed"]}'</pre>
    <p>All requests are described under <a href="/docs#/Webhooks">API</a>. To see events before there is a program that takes
      them, run <code>ev webhooks listen</code>.</p>`
}

/** Making an endpoint. */
function createRoutes(deps: DashboardDeps): Hono<Env> {
  return new Hono<Env>()
    .get('/webhooks/new', c => formPage(c, deps, { draft: UNWRITTEN }))
    .post('/webhooks', async c => {
      const sent = await sentForm(c)
      const [draft, once] = [draftOf(sent), readNonce(sent)]
      try {
        const options = { body: bodyOf(draft), once }
        const { data } = await c.get('api').ask<CreatedWebhook>('/v1/webhooks', options)
        return await secretPage(c, {
          ...{ title: 'The webhook is made', webhookId: data.id, url: data.url },
          ...{ secret: data.secret, previousUntil: null },
        })
      } catch (error) {
        return formPage(c, deps, { draft, once, problem: problemWith(error) })
      }
    })
}

const UNWRITTEN: Draft = { url: '', events: ['batch.completed'], description: '', active: true }

type Shown = {
  readonly draft: Draft
  readonly once?: string | undefined
  readonly problem?: ApiProblem
}

async function formPage(
  c: Context<Env>,
  { random }: DashboardDeps,
  { draft, once, problem }: Shown,
): Promise<Response> {
  const fields = await endpointFields(c, draft, { isNew: true })
  return page(c, {
    title: 'New webhook',
    body: html`
      ${problem === undefined ? NOTHING : notice('bad', problem.message)}
      ${form(c, '/webhooks', html`${nonceField(random, { once, problem })} ${fields} <button class="primary">Make the webhook</button>`)}
      <p><small>Its secret is shown on the next page, once.</small></p>`,
    ...(problem && { status: problem.status as 400 }),
  })
}

/** One delivery: what was sent, what was answered each time, and sending it once more. */
function deliveryRoutes(): Hono<Env> {
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
