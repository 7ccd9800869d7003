import { pathOf, isForLog, logPart, logSection } from './log.ts'
import { type Context, Hono } from 'hono'
import { html } from 'hono/html'
import type { DeliveryDetailAnswer, Webhook, WebhookAnswer } from '../../client/types.ts'
import { DAY, HOUR, SECOND } from '../../platform/clock.ts'
import type { ApiProblem } from '../api.ts'
import type { DashboardDeps, Env } from '../deps.ts'
import { confirmed, field, form, nonceField, select } from '../page/form.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { page } from '../page/layout.ts'
import { notice, type Tone } from '../page/notice.ts'
import { time } from '../page/text.ts'
import { csrfField } from '../session/csrf.ts'
import { may } from '../session/signed-in.ts'
import { type Draft, endpointFields } from './endpoint-form.ts'
import { outcome } from './test-outcome.ts'

/** How an endpoint stands, as a word and as sentences. */
type EndpointBadge = {
  readonly tone: Tone
  readonly word: string
  /** What that means, and what to do about it. */
  readonly text: Html
}

function endpointBadge(webhook: Webhook): EndpointBadge {
  const { active, disabled_reason: reason, failing_since: since } = webhook
  if (!active && reason !== null) return switchedOff(webhook, reason)
  if (!active) return { tone: 'info', word: 'off', text: OFF }
  if (since !== null) return { tone: 'warn', word: 'failing', text: failing(since) }
  return { tone: 'ok', word: 'on', text: html`Events are sent to it as they happen.` }
}

const OFF = html`It was switched off by hand, so nothing is sent to it. What was on its way waits for up to seven days
  and goes on when it is switched on again; what happens meanwhile is not kept for it.`

const failing = (
  since: string,
) => html`Every attempt has failed since ${time(since)}. Each event is sent again after
  1 minute, 5 minutes, 30 minutes, 2 hours and 24 hours; after five days of nothing but failures the webhook is switched
  off. The deliveries below say what went wrong.`

const switchedOff = (webhook: Webhook, reason: string): EndpointBadge => ({
  tone: 'bad',
  word: 'switched off',
  text: html`ev switched it off ${time(webhook.updated_at)}: ${reason}
    ${webhook.failing_since === null ? '' : html`It has failed since ${time(webhook.failing_since)}.`}
    Mend the receiver, switch the webhook on again, and test it; what was given up can then be sent again. If nobody needs
    it any more, delete it.`,
})

/** The same in a table. */
export const renderBadge = (webhook: Webhook): Html => {
  const { tone, word } = endpointBadge(webhook)
  const { disabled_reason: reason, failing_since: since } = webhook
  const why =
    !webhook.active && reason !== null
      ? html` <small>${reason}</small>`
      : webhook.active && since !== null
        ? html` <small>since ${time(since)}</small>`
        : ''
  return html`<span class="badge is-${tone}">${word}</span>${why}`
}

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

/** Sends once more what was given up. */
const recoverForm = (
  c: Context<Env>,
  { clock }: DashboardDeps,
  { id, active, failing_since }: Webhook,
): Html => html`
  <section class="card">
    <h2>Send again what was given up</h2>
    ${
      active
        ? form(
            c,
            `/webhooks/${id}/recover`,
            html`
              ${field({
                ...{
                  label: 'Events since (UTC)',
                  name: 'since',
                  type: 'datetime-local',
                  required: true,
                },
                value: (failing_since ?? new Date(clock.now() - DAY).toISOString()).slice(
                  0,
                  MINUTES,
                ),
                hint: 'What has failed since then and is in the log, which goes back seven days, is sent with six attempts anew.',
              })}
              <button>Send them again</button>`,
          )
        : html`<p>It is switched off, so nothing is sent. Switch it on first.</p>`
    }
  </section>`

/** `2026-03-21T10:30`, as fields of HTML have it. */
const MINUTES = 'YYYY-MM-DDTHH:MM'.length

/** Gives the endpoint another secret. */
const rotateForm = (
  c: Context<Env>,
  { random }: DashboardDeps,
  { id, secret_hint, previous_secret_expires_at: previous }: Webhook,
): Html => html`
  <section class="card">
    <h2>Another secret</h2>
    <p>The secret that signs now ends with <code>…${secret_hint}</code>.
      ${previous === undefined ? NOTHING : html`The one before it holds too until ${time(previous)}.`}</p>
    ${form(
      c,
      `/webhooks/${id}/secret`,
      html`
        ${nonceField(random)}
        ${select({ label: 'The secret of now goes on for', name: 'grace', choices: GRACES })}
        <button>Make a new secret</button>`,
    )}
    <p><small>While both hold, <code>webhook-signature</code> has a signature by each. <code>X-EV-Signature</code> is made
      with the new one at once.</small></p>
  </section>`

const grace = (ms: number, label: string, checked = false) => ({
  ...{ value: String(ms / SECOND), label, checked },
})

const GRACES = [
  grace(0, 'not a moment: it is known to others'),
  grace(HOUR, '1 hour'),
  grace(DAY, '24 hours', true),
  grace(7 * DAY, '7 days'),
]
