import { html } from 'hono/html'
import type { Webhook } from '../../client/types.ts'
import type { Html } from '../page/html.ts'
import type { Tone } from '../page/notice.ts'
import { time } from '../page/text.ts'

/** How an endpoint stands, as a word and as sentences. */
export type EndpointBadge = {
  readonly tone: Tone
  readonly word: string
  /** What that means, and what to do about it. */
  readonly text: Html
}

export function endpointBadge(webhook: Webhook): EndpointBadge {
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
