import type { Context } from 'hono'
import { Hono } from 'hono'
import { html } from 'hono/html'
import type { DeliveryDetailAnswer, Webhook, WebhookAnswer } from '../../client/types.ts'
import type { ApiProblem } from '../api.ts'
import type { DashboardDeps, Env } from '../deps.ts'
import { confirmed, form } from '../page/form.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { page } from '../page/layout.ts'
import { notice } from '../page/notice.ts'
import { time } from '../page/text.ts'
import { csrfField } from '../session/csrf.ts'
import { may } from '../session/signed-in.ts'
import { type Draft, endpointFields } from './endpoint-form.ts'
import { isForLog, logPart, logSection } from './log.ts'
import { recoverForm, rotateForm } from './retry-forms.ts'
import { endpointBadge } from './status.ts'
import { outcome } from './test-outcome.ts'

/** One endpoint: how it stands, what was sent to it, and all that can be done with it. */
export function endpointRoutes(deps: DashboardDeps): Hono<Env> {
  return new Hono<Env>().get('/webhooks/:id', async c => {
    const id = c.req.param('id')
    return isForLog(c) ? logPart(c, id) : endpointPage(c, deps, id)
  })
}

/** What was refused, to be shown with what was written. */
export type Refused = { readonly draft: Draft; readonly problem: ApiProblem }

export async function endpointPage(
  c: Context<Env>,
  deps: DashboardDeps,
  id: string,
  refused?: Refused,
): Promise<Response> {
  const api = c.get('api')
  const { data: webhook } = await api.ask<WebhookAnswer>(pathOf(id))
  const status = endpointBadge(webhook)
  const mayWrite = may(c.get('user'), 'webhooks:write')
  return page(c, {
    title: webhook.url,
    actions: mayWrite ? buttons(c, webhook) : html`<small>${LOOK_ONLY}</small>`,
    body: html`
      ${refused === undefined ? NOTHING : notice('bad', refused.problem.message)}
      ${notice(status.tone, html`<b>${status.word}</b> · ${status.text}`)}
      <div id="tested" aria-live="polite">${await tested(c, id)}</div>
      ${await logSection(c, webhook)}
      ${mayWrite ? await settings(c, deps, webhook, refused) : NOTHING}`,
    ...(refused && { status: refused.problem.status as 400 }),
  })
}

/** The path of an endpoint in the API. */
export const pathOf = (id: string) => `/v1/webhooks/${encodeURIComponent(id)}`

const LOOK_ONLY = 'Your key may look, but not change anything: it lacks the scope “webhooks:write”.'

const buttons = (c: Context<Env>, { id, active }: Webhook): Html => html`
  <form method="post" action="/webhooks/${id}/test" hx-post="/webhooks/${id}/test" hx-target="#tested"
    hx-sync="this:drop">${csrfField(c)}<button class="primary">Send a test event</button></form>
  ${form(
    c,
    `/webhooks/${id}/switch`,
    html`<button name="active" value="${String(!active)}">${active ? 'Switch off' : 'Switch on'}</button>`,
  )}`

/** Without scripts what came of a test is shown by the page that the test leads back to. */
async function tested(c: Context<Env>, id: string): Promise<Html> {
  const deliveryId = c.req.query('tested')
  if (deliveryId === undefined) return NOTHING
  const path = `${pathOf(id)}/deliveries/${encodeURIComponent(deliveryId)}`
  const { data } = await c.get('api').ask<DeliveryDetailAnswer>(path)
  return outcome({ ...data, response_excerpt: data.attempts.at(-1)?.response_excerpt ?? null })
}

async function settings(
  c: Context<Env>,
  deps: DashboardDeps,
  webhook: Webhook,
  refused: Refused | undefined,
): Promise<Html> {
  const written = { ...webhook, description: webhook.description ?? '' }
  const fields = await endpointFields(c, refused?.draft ?? written, { isNew: false })
  const action = `/webhooks/${webhook.id}`
  return html`
    <div class="grid">
      <section class="card">
        <h2>Change it</h2>
        ${form(c, action, html`${fields} <button class="primary">Save</button>`)}
        <p><small>Made ${time(webhook.created_at)}, changed ${time(webhook.updated_at)}.</small></p>
      </section>
      <div>
        ${recoverForm(c, deps, webhook)} ${rotateForm(c, deps, webhook)}
        <section class="card">
          <h2>Delete it</h2>
          ${confirmed(c, {
            ...{ action: `${action}/delete`, label: 'Delete', yes: 'Delete it' },
            question:
              'Nothing is sent to it any more, also not what was to be sent again, and its log goes with it. This cannot be undone.',
          })}
        </section>
      </div>
    </div>`
}
