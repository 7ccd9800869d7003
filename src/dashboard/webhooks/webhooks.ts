import { type Context, Hono } from 'hono'
import { html } from 'hono/html'
import type { CreatedWebhook, EventList, Webhook, WebhookList } from '../../client/types.ts'
import type { ApiProblem } from '../api.ts'
import type { DashboardDeps, Env } from '../deps.ts'
import { form, nonceField, problemWith, readNonce, sentForm } from '../page/form.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { page } from '../page/layout.ts'
import { empty, notice } from '../page/notice.ts'
import { time } from '../page/text.ts'
import { may } from '../session/signed-in.ts'
import { actionRoutes } from './actions.ts'
import { deliveryRoutes } from './delivery.ts'
import { endpointRoutes, renderBadge } from './endpoint.ts'
import { bodyOf, type Draft, draftOf, endpointFields } from './endpoint-form.ts'
import { secretPage } from './secret.ts'

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
