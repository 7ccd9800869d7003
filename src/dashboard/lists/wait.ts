import { html } from 'hono/html'
import type { Job } from '../../client/types.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { time } from '../page/text.ts'

export type Wait = NonNullable<Job['waiting_for']>[number]

/** Causes that an admin can examine on the Health page. */
const HEALTH_REASONS: readonly Wait['reason'][] = ['dns_check', 'no_worker', 'refused']

const PROCESSING = 'Processing as fast as the mail servers allow.'

/** Renders what an active list waits for, or that it waits for nothing. */
export const waitList = (waits: readonly Wait[], isAdmin: boolean): Html => html`
  <ul id="live-waits" aria-label="What the list waits for">${
    waits.length === 0
      ? html`<li>${PROCESSING}</li>`
      : waits.map(
          wait => html`
            <li>${waitText(wait)}${isAdmin && HEALTH_REASONS.includes(wait.reason) ? html` See <a href="/doctor">Health</a>.` : NOTHING}</li>`,
        )
  }</ul>`

/** Renders a cause with its time, which `app.js` shows in the local time zone. */
function waitText({ detail, until }: Wait): Html {
  if (until === null) return html`${detail}`
  const [before = '', after = ''] = detail.split(until)
  return html`${before}${time(until)}${after}`
}
