import { html } from 'hono/html'
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
