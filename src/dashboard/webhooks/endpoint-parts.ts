import type { Context } from 'hono'
import { html } from 'hono/html'
import type { Webhook, WebhookTest } from '../../client/types.ts'
import { formatDuration, formatNumber, formatPercent } from '../../platform/format.ts'
import type { Env } from '../deps.ts'
import { bar } from '../page/chart.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { page } from '../page/layout.ts'
import { notice } from '../page/notice.ts'
import { card } from '../page/parts.ts'
import { codeBlock, copyable, time } from '../page/text.ts'

type Day = Webhook['daily_attempts'][number]

/** Renders the success rate of an endpoint with a small chart of its days, for a table. */
export function successCell({ daily_attempts: days }: Webhook): Html {
  if (days.length === 0) return html`–`
  const max = Math.max(...days.map(totalOf))
  return html`${rateOf(days)}
    <svg class="spark" viewBox="0 0 ${WIDTH * DAYS_SHOWN} ${HEIGHT}" aria-hidden="true">${days.map(
      (day, n) => column(day, { x: n * WIDTH, max }),
    )}</svg>`
}

/** Days that the API returns at most. */
const DAYS_SHOWN = 7
const WIDTH = 8
const HEIGHT = 18

function column(day: Day, { x, max }: { readonly x: number; readonly max: number }): Html {
  const height = (count: number) => (HEIGHT * count) / max
  const [failed, delivered] = [height(day.failed), height(day.delivered)]
  const rect = (kind: string, y: number, size: number) =>
    html`<rect class="fill-${kind}" x="${x}" width="${WIDTH - 2}" y="${y.toFixed(2)}" height="${size.toFixed(2)}" />`
  return html`${rect('undeliverable', HEIGHT - failed, failed)}${rect('deliverable', HEIGHT - failed - delivered, delivered)}`
}

/** Renders the attempts of the last days as a chart; nothing before the first attempt. */
export const successCard = ({ daily_attempts: days }: Webhook): Html =>
  days.length === 0
    ? NOTHING
    : card({
        title: 'Attempts in the last seven days',
        more: html`<small>${rateOf(days)} successful</small>`,
        body: html`
          <table class="bars">
            <caption class="unseen">Attempts by UTC day</caption>
            ${days.map(day => dayRow(day, Math.max(...days.map(totalOf))))}
          </table>`,
      })

const dayRow = (day: Day, max: number): Html => {
  const segments = [
    { value: day.delivered, kind: 'deliverable' },
    { value: day.failed, kind: 'undeliverable' },
  ] as const
  return html`<tr><th scope="row">${day.date}</th><td class="bar">${bar(segments, max)}</td>
    <td class="number">${formatNumber(totalOf(day))} <small>${rateOf([day])} successful</small></td></tr>`
}

const totalOf = ({ delivered, failed }: Day) => delivered + failed

const rateOf = (days: readonly Day[]) =>
  formatPercent(
    days.reduce((sum, { delivered }) => sum + delivered, 0),
    days.reduce((sum, day) => sum + totalOf(day), 0),
  )

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

/** Formats a response as "Responded 204 after 84 ms." */
export function formatResponse({
  status_code: status,
  duration_ms: durationMs,
}: ReceiverResponse): string {
  const after = durationMs === null ? '' : ` after ${formatDuration(durationMs)}`
  return status === null ? `No response${after}.` : `Responded ${status}${after}.`
}

type Shown = {
  readonly title: string
  readonly webhookId: string
  readonly url: string
  readonly secret: string
  /** Until when the previous secret stays valid; null if there is none. */
  readonly previousUntil: string | null
}

/** Shows a secret once: it is only in this response. */
export const secretPage = (c: Context<Env>, o: Shown) =>
  page(c, {
    title: o.title,
    hasAlerts: false,
    body: html`
      ${notice('warn', 'This secret is shown only once. Save it in the configuration of your program now.')}
      <p>${copyable(o.secret)}</p>
      <p>It signs requests to <b>${o.url}</b>.
        ${o.previousUntil === null ? NOTHING : html`The previous secret stays valid until ${time(o.previousUntil)}.`}</p>
      <p><a class="button primary" href="/webhooks/${o.webhookId}">I have saved it</a></p>
      ${howToVerify()}`,
  })

/** Explains how a receiver verifies signatures. */
const howToVerify = (): Html => html`
  <h2>Verify the signature</h2>
  <p>With the npm package evmail-client. Pass it the raw body, before parsing:</p>
  ${codeBlock(WITH_CLIENT)}
  <p>Without a library: <code>X-EV-Signature</code> is the HMAC-SHA256 of the raw body in lower-case hexadecimal, keyed with
    the full text of the secret. The headers <code>webhook-id</code>, <code>webhook-timestamp</code> and
    <code>webhook-signature</code> follow Standard Webhooks, which has libraries for most languages.</p>
  ${codeBlock(BY_HAND)}
  <p>Respond with any 2xx within 30 seconds and process the event afterwards. An event may be delivered more than once,
    with the same <code>event_id</code>.</p>`

const WITH_CLIENT = `import { verifyWebhook } from 'evmail-client'

app.post('/hook', express.raw({ type: 'application/json' }), async (request, response) => {
  const secret = process.env.EV_WEBHOOK_SECRET
  const event = await verifyWebhook(request.body, request.headers, secret).catch(console.error)
  if (!event) return response.sendStatus(401)
  response.sendStatus(204)
  if (await isNew(event.event_id)) await handle(event)
})`

const BY_HAND = `const expected = createHmac('sha256', secret).update(rawBody).digest()
const received = Buffer.from(headers['x-ev-signature'] ?? '', 'hex')
const isValid = received.length === expected.length && timingSafeEqual(received, expected)`
