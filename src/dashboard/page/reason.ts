import { html } from 'hono/html'
import { REASON_TEXTS, REASONS, type Reason } from '../../engine/verdict/reason.ts'
import { type Html, NOTHING } from './html.ts'

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
