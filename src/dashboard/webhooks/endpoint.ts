import { type Context, Hono } from 'hono'
import { html } from 'hono/html'
import type { DeliveryDetailAnswer, Webhook, WebhookAnswer } from '../../client/types.ts'
import { DAY, HOUR, SECOND } from '../../platform/clock.ts'
import { SENT_KINDS } from '../../webhooks/event-types.ts'
import type { ApiProblem } from '../api.ts'
import type { DashboardDeps, Env } from '../deps.ts'
import { confirmed, field, form, nonceField, select } from '../page/form.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { page } from '../page/layout.ts'
import { notice } from '../page/notice.ts'
import { statusBadge, type Tone, time } from '../page/text.ts'
import { csrfField } from '../session/csrf.ts'
import { may, readOnlyNote } from '../session/signed-in.ts'
import { type Draft, endpointFields, LABELS } from './endpoint-form.ts'
import { successCard, testResult } from './endpoint-parts.ts'
import { isForLog, logPart, logSection, pathOf } from './log.ts'

/** The state of an endpoint with label and explanation. */
type EndpointBadge = {
  readonly tone: Tone
  readonly label: string
  /** Explains the state and the fix. */
  readonly text: Html
}

function endpointBadge(webhook: Webhook): EndpointBadge {
  const { active, disabled_reason: reason, failing_since: since } = webhook
  if (!active && reason !== null) return autoDisabled(webhook, reason)
  if (!active) return { tone: 'info', label: 'Disabled', text: DISABLED }
  if (since !== null) return { tone: 'warn', label: 'Failing', text: failing(since) }
  return { tone: 'ok', label: 'Enabled', text: html`Events are sent as they happen.` }
}

const DISABLED = html`Disabled manually: no events are sent. Pending deliveries wait for up to seven days and resume when
  the webhook is re-enabled. Events that happen while it is disabled are not stored for it.`

const failing = (
  since: string,
) => html`Every attempt has failed since ${time(since)}. Each event is retried after 1 minute, 5 minutes, 30 minutes,
  2 hours and 24 hours. After five days without a successful attempt the webhook is disabled. See the errors in the
  deliveries below.`

const autoDisabled = (webhook: Webhook, reason: string): EndpointBadge => ({
  tone: 'bad',
  label: 'Disabled by ev',
  text: html`ev disabled this webhook ${time(webhook.updated_at)}: ${reason}
    ${webhook.failing_since === null ? '' : html`It has been failing since ${time(webhook.failing_since)}.`}
    Fix the receiver, re-enable the webhook and test it. You can then resend the failed deliveries. If the webhook is
    no longer needed, delete it.`,
})

/** Renders the state of an endpoint in a table. */
export const renderBadge = (webhook: Webhook): Html => {
  const { tone, label } = endpointBadge(webhook)
  const { disabled_reason: reason, failing_since: since } = webhook
  const why =
    !webhook.active && reason !== null
      ? html` <small>${reason}</small>`
      : webhook.active && since !== null
        ? html` <small>since ${time(since)}</small>`
        : ''
  return html`${statusBadge(tone, label)}${why}`
}

/** Route of an endpoint: state, deliveries and settings. */
export function endpointRoutes(deps: DashboardDeps): Hono<Env> {
  return new Hono<Env>().get('/webhooks/:id', async c => {
    const id = c.req.param('id')
    return isForLog(c) ? logPart(c, id) : endpointPage(c, deps, id)
  })
}

/** A rejected change: the submitted values and the error. */
type Rejection = { readonly draft: Draft; readonly problem: ApiProblem }

export async function endpointPage(
  c: Context<Env>,
  deps: DashboardDeps,
  id: string,
  rejection?: Rejection,
): Promise<Response> {
  const api = c.get('api')
  const { data: webhook } = await api.ask<WebhookAnswer>(pathOf(id))
  const status = endpointBadge(webhook)
  const mayWrite = may(c.get('user'), 'webhooks:write')
  return page(c, {
    title: webhook.description ?? webhook.url,
    back: { href: '/webhooks', label: 'Webhooks' },
    badge: statusBadge(status.tone, status.label),
    ...(webhook.description === null ? {} : { intro: webhook.url }),
    actions: mayWrite ? buttons(c, webhook) : readOnlyNote(c, 'webhooks:write'),
    body: html`
      ${notice(status.tone, status.text)}
      <div id="tested" aria-live="polite">${await tested(c, id)}</div>
      ${successCard(webhook)}
      ${await logSection(c, webhook)}
      ${mayWrite ? await settings(c, deps, webhook, rejection) : NOTHING}`,
    problem: rejection?.problem,
    labels: LABELS,
  })
}

const buttons = (c: Context<Env>, { id, active }: Webhook): Html => html`
  <form method="post" action="/webhooks/${id}/test" hx-post="/webhooks/${id}/test" hx-target="#tested"
    hx-sync="this:drop" class="actions">${csrfField(c)}
    <select name="event" aria-label="Event to send">${SENT_KINDS.toReversed().map(kind => html`<option>${kind}</option>`)}</select>
    <button class="primary">Send test event</button></form>
  ${form(
    c,
    `/webhooks/${id}/switch`,
    html`<button name="active" value="${String(!active)}">${active ? 'Disable' : 'Enable'}</button>`,
  )}`

/** Renders the result of a test without JavaScript, after the redirect. */
async function tested(c: Context<Env>, id: string): Promise<Html> {
  const deliveryId = c.req.query('tested')
  if (deliveryId === undefined) return NOTHING
  const path = `${pathOf(id)}/deliveries/${encodeURIComponent(deliveryId)}`
  const { data } = await c.get('api').ask<DeliveryDetailAnswer>(path)
  return testResult({ ...data, response_excerpt: data.attempts.at(-1)?.response_excerpt ?? null })
}

async function settings(
  c: Context<Env>,
  deps: DashboardDeps,
  webhook: Webhook,
  rejection: Rejection | undefined,
): Promise<Html> {
  const current = {
    ...webhook,
    description: webhook.description ?? '',
    headers: '',
    removed: [],
  }
  const fields = await endpointFields(c, rejection?.draft ?? current, {
    isNew: false,
    headerNames: webhook.header_names,
  })
  const action = `/webhooks/${webhook.id}`
  return html`
    <div class="grid">
      <section class="card">
        <h2>Settings</h2>
        ${form(c, action, html`${fields} <button class="primary">Save</button>`)}
        <p><small>Created ${time(webhook.created_at)}, updated ${time(webhook.updated_at)}.</small></p>
      </section>
      <div>
        ${recoverForm(c, deps, webhook)} ${rotateForm(c, deps, webhook)}
        <section class="card">
          <h2>Delete webhook</h2>
          ${confirmed(c, {
            action: `${action}/delete`,
            label: 'Delete',
            yes: 'Delete webhook',
            question:
              'This deletes the webhook with its pending deliveries and its log. This cannot be undone.',
          })}
        </section>
      </div>
    </div>`
}

/** Renders the form that resends failed deliveries. */
const recoverForm = (
  c: Context<Env>,
  { clock }: DashboardDeps,
  { id, active, failing_since }: Webhook,
): Html => html`
  <section class="card">
    <h2>Resend failed deliveries</h2>
    ${
      active
        ? form(
            c,
            `/webhooks/${id}/recover`,
            html`
              ${field({
                label: 'Events since (UTC)',
                name: 'since',
                type: 'datetime-local',
                required: true,
                value: (failing_since ?? new Date(clock.now() - DAY).toISOString()).slice(
                  0,
                  MINUTES,
                ),
                hint: 'Resends deliveries that have failed since then, with six new attempts each. The log goes back seven days.',
              })}
              <button>Resend</button>`,
          )
        : html`<p>The webhook is disabled. Enable it first.</p>`
    }
  </section>`

/** Length of `2026-03-21T10:30`, the format of datetime-local fields. */
const MINUTES = 'YYYY-MM-DDTHH:MM'.length

/** Renders the form that rotates the signing secret. */
const rotateForm = (
  c: Context<Env>,
  { random }: DashboardDeps,
  { id, secret_hint, previous_secret_expires_at: previous }: Webhook,
): Html => html`
  <section class="card">
    <h2>Signing secret</h2>
    <p>The current secret ends with <code>…${secret_hint}</code>.
      ${previous === undefined ? NOTHING : html`The previous secret stays valid until ${time(previous)}.`}</p>
    ${form(
      c,
      `/webhooks/${id}/secret`,
      html`
        ${nonceField(random)}
        ${select({ label: 'Keep the old secret valid for', name: 'grace', choices: GRACES })}
        <button>Rotate secret</button>`,
    )}
    <p><small>During the grace period <code>webhook-signature</code> contains a signature by each secret.
      <code>X-EV-Signature</code> uses the new secret immediately.</small></p>
  </section>`

const grace = (ms: number, label: string, checked = false) => ({
  value: String(ms / SECOND),
  label,
  checked,
})

const GRACES = [
  grace(0, 'no time (it was compromised)'),
  grace(HOUR, '1 hour'),
  grace(DAY, '24 hours', true),
  grace(7 * DAY, '7 days'),
]
