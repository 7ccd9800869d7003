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
import { type Html, isHtmx, NOTHING } from '../page/html.ts'
import { page, part } from '../page/layout.ts'
import { empty, notice } from '../page/notice.ts'
import { facts, primaryLink } from '../page/parts.ts'
import { table } from '../page/table.ts'
import { ago, codeBlock, time } from '../page/text.ts'
import { redirectWithNote } from '../session/cookie.ts'
import { explainMissingScope, may, readOnlyNote } from '../session/signed-in.ts'
import { actionRoutes } from './actions.ts'
import { endpointRoutes, renderBadge } from './endpoint.ts'
import { bodyOf, type Draft, draftOf, endpointFields, headersOf, LABELS } from './endpoint-form.ts'
import { formatResponse, secretPage, successCell } from './endpoint-parts.ts'
import { eventTypesPage } from './event-types.ts'
import { hashVersion, isPending, pagePath, pathOf, SWAP, stateOf, TRIGGERS } from './log.ts'

/** Routes of webhooks: endpoints, their settings and deliveries. */
export function webhooksRoutes(deps: DashboardDeps): Hono<Env> {
  const router = new Hono<Env>()
  router.route('/', listRoutes(deps))
  // Before the endpoint routes, as `/webhooks/:id` would match these, too.
  router.route('/', createRoutes(deps))
  router.get('/webhooks/events', eventTypesPage)
  router.route('/', endpointRoutes(deps))
  router.route('/', actionRoutes(deps))
  router.route('/', deliveryRoutes())
  return router
}

/** Route that lists all endpoints, or explains webhooks if there are none. */
function listRoutes({ settings }: DashboardDeps): Hono<Env> {
  return new Hono<Env>().get('/webhooks', async c => {
    const { data } = await c.get('api').ask<WebhookList>('/v1/webhooks')
    const isEmpty = data.total === 0
    const body = isEmpty ? await hint(c, settings.baseUrl) : webhooksTable(data.webhooks)
    return page(c, {
      title: 'Webhooks',
      body,
      actions: html`<a class="button" href="/webhooks/events">Event types</a>${isEmpty ? NOTHING : newButton(c)}`,
    })
  })
}

const newButton = (c: Context<Env>): Html =>
  may(c.get('user'), 'webhooks:write')
    ? primaryLink('/webhooks/new', 'New webhook', 'plus')
    : readOnlyNote(c, 'webhooks:write')

const webhooksTable = (webhooks: readonly Webhook[]): Html =>
  table({
    caption: 'Webhooks of this account, oldest first',
    columns: [
      {
        label: 'Receiver',
        kind: 'name',
        cell: ({ id, url, description }) =>
          html`<a href="/webhooks/${id}">${description ?? url}</a>
            ${description === null ? NOTHING : html`<br /><small>${url}</small>`}`,
      },
      { label: 'Status', cell: renderBadge },
      { label: 'Success rate', cell: successCell },
      {
        label: 'Events',
        cell: one => html`${one.events.map(event => html`<code>${event}</code> `)}`,
      },
      { label: 'Created', cell: one => ago(one.created_at) },
    ],
    rows: webhooks,
  })

/** Explains webhooks with an example request. */
async function hint(c: Context<Env>, baseUrl: string): Promise<Html> {
  const { data } = await c.get('api').ask<EventList>('/v1/webhooks/events')
  const example = JSON.stringify(data.events[0]?.example ?? {}, null, 2)
  return html`
    ${empty({
      title: 'No webhooks yet',
      text: 'A webhook notifies your program of events, such as a completed list, with a POST request to your URL. You do not need to poll the API.',
      action: newButton(c),
    })}
    <h2>Example request</h2>
    <p>Requests are signed with a secret that only you and ev know. A request without a 2xx response is retried up to five
      times.</p>
    ${codeBlock(example)}
    <h2>Create a webhook with the API</h2>
    ${codeBlock(`curl ${baseUrl}/v1/webhooks -H "Authorization: Bearer $EV_KEY" \\
  -H "Content-Type: application/json" \\
  -d '{"url": "https://app.example.com/hook", "events": ["batch.completed"]}'`)}
    <p>See the <a href="/docs/reference/webhooks">API reference</a>. To receive events on your machine, run
      <code>ev webhooks listen</code>.</p>`
}

/** Routes that create an endpoint. */
function createRoutes(deps: DashboardDeps): Hono<Env> {
  return new Hono<Env>()
    .get('/webhooks/new', c => formPage(c, deps, { draft: DEFAULT_DRAFT }))
    .post('/webhooks', async c => {
      const sent = await sentForm(c)
      const [draft, once] = [draftOf(sent), readNonce(sent)]
      try {
        const options = { body: { ...bodyOf(draft), headers: headersOf(draft) }, once }
        const { data } = await c.get('api').ask<CreatedWebhook>('/v1/webhooks', options)
        return await secretPage(c, {
          title: 'Webhook created',
          webhookId: data.id,
          url: data.url,
          secret: data.secret,
          previousUntil: null,
        })
      } catch (error) {
        return formPage(c, deps, { draft, once, problem: problemWith(error) })
      }
    })
}

const DEFAULT_DRAFT: Draft = {
  url: '',
  events: ['batch.completed'],
  description: '',
  active: true,
  headers: '',
  removed: [],
}

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
  const title = 'New webhook'
  const back = { href: '/webhooks', label: 'Webhooks' }
  if (!may(c.get('user'), 'webhooks:write')) {
    const why = explainMissingScope(c.get('user'), 'webhooks:write', 'creating a webhook requires')
    return page(c, { title, back, body: notice('info', why), status: 403 })
  }
  const fields = await endpointFields(c, draft, { isNew: true, headerNames: [] })
  return page(c, {
    title,
    back,
    body: html`
      <div class="card">
        ${form(c, '/webhooks', html`${nonceField(random, { once, problem })} ${fields} <button class="primary">Create webhook</button>`)}
        <p><small>The signing secret is shown once, on the next page.</small></p>
      </div>`,
    problem,
    labels: LABELS,
  })
}

/** Routes of a delivery: request, attempts and the button that sends it again. */
function deliveryRoutes(): Hono<Env> {
  return new Hono<Env>()
    .get('/webhooks/:id/deliveries/:delivery', async c => {
      const { id, delivery } = c.req.param()
      const api = c.get('api')
      const { data } = await api.ask<DeliveryDetailAnswer>(deliveryPath(id, delivery))
      if (isHtmx(c)) {
        return c.req.query('seen') === versionOf(data)
          ? c.body(null, 204)
          : part(c, history(c, data))
      }
      const { data: webhook } = await api.ask<WebhookAnswer>(pathOf(id))
      return deliveryPage(c, webhook, data)
    })
    .post('/webhooks/:id/deliveries/:delivery/retry', async c => {
      const { id, delivery } = c.req.param()
      await c.get('api').ask(`${deliveryPath(id, delivery)}/retry`, { method: 'POST' })
      return redirectWithNote(
        c,
        `${pagePath(id)}/deliveries/${encodeURIComponent(delivery)}`,
        'Resending with six new attempts.',
      )
    })
}

const deliveryPath = (id: string, delivery: string) =>
  `${pathOf(id)}/deliveries/${encodeURIComponent(delivery)}`

const deliveryPage = (c: Context<Env>, webhook: Webhook, detail: DeliveryDetail) =>
  page(c, {
    title: `Delivery of ${detail.event}`,
    back: { href: `/webhooks/${webhook.id}`, label: webhook.description ?? webhook.url },
    actions: retryButton(c, webhook, detail),
    body: html`
      <p>To <a href="/webhooks/${webhook.id}">${webhook.url}</a>. Event ID <code>${detail.event_id}</code>, the same for
        each attempt.</p>
      ${webhook.active ? NOTHING : notice('warn', 'The webhook is disabled. Enable it to send events.')}
      ${history(c, detail)}
      ${request(detail)}`,
  })

const retryButton = (c: Context<Env>, { id, active }: Webhook, detail: DeliveryDetail): Html =>
  may(c.get('user'), 'webhooks:write') && active
    ? form(
        c,
        `/webhooks/${id}/deliveries/${detail.id}/retry`,
        html`<button class="primary">Resend</button>`,
      )
    : NOTHING

/** Renders the state and attempts of a delivery; polls itself while it is pending. */
function history(c: Context<Env>, detail: DeliveryDetail): Html {
  const chosen = Number(c.req.query('attempt'))
  const shown = detail.attempts.find(({ number }) => number === chosen) ?? detail.attempts.at(-1)
  const path = `/webhooks/${detail.webhook_id}/deliveries/${detail.id}`
  const query = queryOf({ attempt: c.req.query('attempt'), seen: versionOf(detail) })
  const live = html`hx-get="${path}${query}" hx-trigger="every 5s" hx-swap="${SWAP}"`
  return html`
    <div id="course" ${isPending(detail) ? live : NOTHING}>
      ${facts([
        ['Status', stateOf(detail)],
        ['Created', time(detail.created_at)],
        ['Attempts since last resend', String(detail.attempt)],
        ['Kept until', detail.expires_at === null ? null : time(detail.expires_at)],
      ])}
      <h2>Attempts</h2>
      ${shown === undefined ? html`<p>No attempts yet.</p>` : html`${attempts(path, detail, shown)} ${attempt(shown)}`}
    </div>`
}

const versionOf = ({ status, attempt, attempts, next_attempt_at }: DeliveryDetail): string =>
  hashVersion([status, attempt, attempts.at(-1)?.number, next_attempt_at])

const attempts = (path: string, detail: DeliveryDetail, shown: DeliveryAttempt): Html =>
  table({
    caption: 'Attempts, latest first',
    columns: [
      {
        label: 'Attempt',
        kind: 'name',
        cell: one =>
          html`<a id="attempt-${one.number}" href="${path}?attempt=${one.number}"
            ${one === shown ? html`aria-current="true"` : NOTHING}>Attempt ${one.number}</a>`,
      },
      { label: 'Time', cell: one => time(one.started_at) },
      { label: 'Trigger', cell: one => TRIGGERS[one.trigger] },
      {
        label: 'Result',
        kind: 'wide',
        cell: one =>
          html`${formatResponse(one)}${one.error === null ? NOTHING : html` <small>${one.error}</small>`}`,
      },
    ],
    rows: detail.attempts.toReversed(),
  })

/** Renders one attempt in full; only one, as each may have several kilobytes. */
const attempt = (one: DeliveryAttempt): Html => html`
  <section class="card">
    <h3>Attempt ${one.number}: ${formatResponse(one)}</h3>
    ${one.error === null ? NOTHING : html`<p>${one.error}</p>`}
    <p><small>Sent to ${one.url}, ${time(one.started_at)}; duration ${formatDuration(one.duration_ms)}.</small></p>
    ${one.response_headers === null ? NOTHING : html`<h4>Response headers</h4><pre>${headersText(one.response_headers)}</pre>`}
    ${
      one.response_excerpt === null
        ? NOTHING
        : html`<h4>Response body (excerpt)</h4>
            <pre>${one.response_excerpt === '' ? '(empty body)' : one.response_excerpt}</pre>`
    }
  </section>`

const request = ({ request: { url, headers, body } }: DeliveryDetail): Html => html`
  <h2>Request</h2>
  <pre>POST ${url}
${headersText(headers)}</pre>
  <pre>${pretty(body)}</pre>
  <p><small>The body is formatted for display; it is sent and signed without line breaks. The values of custom headers are hidden.</small></p>`

const headersText = (headers: Readonly<Record<string, string>>) =>
  Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n')

/** Formats JSON with indentation; returns other text unchanged. */
function pretty(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), null, 2)
  } catch {
    return body
  }
}
