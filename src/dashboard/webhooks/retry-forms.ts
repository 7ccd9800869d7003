import type { Context } from 'hono'
import { html } from 'hono/html'
import type { Webhook } from '../../client/types.ts'
import { DAY, HOUR, SECOND } from '../../platform/clock.ts'
import type { DashboardDeps, Env } from '../deps.ts'
import { field, form, select } from '../page/form.ts'
import { nonceField } from '../page/form-nonce.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { time } from '../page/text.ts'

/** Sends once more what was given up. */
export const recoverForm = (
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
export const rotateForm = (
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
