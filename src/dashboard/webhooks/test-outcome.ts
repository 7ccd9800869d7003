import { html } from 'hono/html'
import type { WebhookTest } from '../../client/types.ts'
import { formatDuration } from '../../platform/format.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { notice } from '../page/notice.ts'

/** What a receiver did with a request. */
export type Answered = Pick<WebhookTest['data'], 'status_code' | 'error' | 'response_excerpt'> & {
  readonly duration_ms: number | null
}

/** What came of a test event. */
export const outcome = (o: Answered): Html => html`
  <section class="card">
    <h2>What came of the test</h2>
    ${notice(o.error === null ? 'ok' : 'bad', html`${answered(o)}${o.error === null ? NOTHING : html` ${o.error}`}`)}
    ${
      o.response_excerpt === null
        ? NOTHING
        : html`<h3>The answer</h3><pre>${o.response_excerpt === '' ? '(without a body)' : o.response_excerpt}</pre>`
    }
  </section>`

/** “Answered 204 after 84 ms.” */
export function answered({ status_code: status, duration_ms: took }: Answered): string {
  const after = took === null ? '' : ` after ${formatDuration(took)}`
  return status === null ? `No answer came${after}.` : `Answered ${status}${after}.`
}
