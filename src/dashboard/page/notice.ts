import { html } from 'hono/html'
import { REASON_TEXTS, REASONS, type Reason } from '../../engine/verdict/reason.ts'
import { type Html, NOTHING } from './html.ts'
import { type IconName, icon } from './icon.ts'
import type { Tone } from './text.ts'

/** Renders a notice box; screen readers announce `bad` at once. */
export const notice = (tone: Tone, body: Html | string): Html => html`
  <div class="notice is-${tone}" role="${tone === 'bad' ? 'alert' : 'status'}">${icon(NOTICE_ICONS[tone])}<p>${body}</p></div>`

const NOTICE_ICONS: Readonly<Record<Tone, IconName>> = {
  ok: 'circle-check',
  info: 'info',
  warn: 'triangle-alert',
  bad: 'circle-alert',
  running: 'activity',
}

/** Renders an empty state: what will be shown here and how to get it. */
export const empty = (o: {
  readonly title: string
  readonly text: Html | string
  readonly icon?: IconName
  readonly action?: Html
}) => html`
  <section class="empty">
    ${icon(o.icon ?? 'inbox')}
    <h2>${o.title}</h2>
    <p>${o.text}</p>
    ${o.action ?? NOTHING}
  </section>`

/** An error of the dashboard itself; `message` is shown to the user. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly status: 400 | 403 | 404 | 409 | 413 | 429 | 503 | 507

  constructor(status: Refusal['status'], message: string) {
    super(message)
    this.status = status
  }
}

/** Returns the name of a reason: `no_mx_record` → "No mail server". */
export const reasonWord = (reason: Reason): string => REASON_TEXTS[reason].name

/** Renders a reason in a table cell; its meaning is in the tooltip. */
export const reasonCell = (reason: Reason): Html =>
  html`<span class="reason" title="${REASON_TEXTS[reason].means}">${reasonWord(reason)}</span>`

/** Renders the meaning of each reason in a table, for devices without hover. */
export function meanings(shown: readonly (Reason | null)[]): Html {
  const there = REASONS.filter(reason => shown.includes(reason))
  if (there.length === 0) return NOTHING
  return html`
    <details class="meanings">
      <summary>What these reasons mean</summary>
      <dl>${there.map(reason => {
        const { means, todo } = REASON_TEXTS[reason]
        return html`<dt>${reasonWord(reason)}</dt><dd>${means} <small>What to do: ${todo}</small></dd>`
      })}</dl>
    </details>`
}
