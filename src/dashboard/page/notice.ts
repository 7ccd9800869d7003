import { html } from 'hono/html'
import { REASON_TEXTS, REASONS, type Reason } from '../../engine/verdict/reason.ts'
import { type Html, NOTHING } from './html.ts'

/** What kind of word a notice is; it is read out at once where something went wrong. */
export type Tone = 'ok' | 'info' | 'warn' | 'bad'

/** A sentence in a box. */
export const notice = (tone: Tone, body: Html | string) => html`
  <div class="notice is-${tone}" role="${tone === 'bad' ? 'alert' : 'status'}"><p>${body}</p></div>`

/** What is said where there is nothing yet: what would be here, and how it comes. */
export const empty = (o: {
  readonly title: string
  readonly text: Html | string
  readonly action?: Html
}) => html`
  <section class="empty">
    <h2>${o.title}</h2>
    <p>${o.text}</p>
    ${o.action ?? NOTHING}
  </section>`

/** The dashboard says no; `message` is a sentence to be shown. */
export class Refusal extends Error {
  override readonly name = 'Refusal'
  readonly status: 400 | 403 | 404 | 409 | 413 | 429 | 503 | 507

  constructor(status: Refusal['status'], message: string) {
    super(message)
    this.status = status
  }
}

/** A reason as it is read: “accepted email”, “no MX record”. */
export const reasonWord = (reason: Reason): string =>
  reason.replaceAll('_', ' ').replace(/\b(mx|dns|smtp)\b/g, name => name.toUpperCase())

/** The same in a table, where what it means would make rows tall. */
export const reasonCell = (reason: Reason): Html =>
  html`<span class="reason" title="${REASON_TEXTS[reason].means}">${reasonWord(reason)}</span>`

/** What the reasons of a table mean, for who has nothing to point with; in one order, each once. */
export function meanings(shown: readonly (Reason | null)[]): Html {
  const there = REASONS.filter(reason => shown.includes(reason))
  if (there.length === 0) return NOTHING
  return html`
    <details class="meanings">
      <summary>What the reasons mean</summary>
      <dl>${there.map(reason => {
        const { means, todo } = REASON_TEXTS[reason]
        return html`<dt>${reasonWord(reason)}</dt><dd>${means} <small>What to do: ${todo}</small></dd>`
      })}</dl>
    </details>`
}
