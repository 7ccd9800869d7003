import { html } from 'hono/html'
import type { WebhookTest } from '../../client/types.ts'
import { formatDuration } from '../../platform/format.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { notice } from '../page/notice.ts'

/** The response of a receiver to a request. */
type ReceiverResponse = Pick<WebhookTest['data'], 'status_code' | 'error' | 'response_excerpt'> & {
  readonly duration_ms: number | null
}

/** Renders the result of a test event. */
export const testResult = (o: ReceiverResponse): Html => html`
  <section class="card">
    <h2>Test result</h2>
    ${notice(o.error === null ? 'ok' : 'bad', html`${formatResponse(o)}${o.error === null ? NOTHING : html` ${o.error}`}`)}
    ${
      o.response_excerpt === null
        ? NOTHING
        : html`<h3>Response</h3><pre>${o.response_excerpt === '' ? '(empty body)' : o.response_excerpt}</pre>`
    }
  </section>`

/** Formats a response as “Responded 204 after 84 ms.” */
export function formatResponse({
  status_code: status,
  duration_ms: durationMs,
}: ReceiverResponse): string {
  const after = durationMs === null ? '' : ` after ${formatDuration(durationMs)}`
  return status === null ? `No response${after}.` : `Responded ${status}${after}.`
}
