import type { Context } from 'hono'
import { html } from 'hono/html'
import type { Env } from '../deps.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { page } from '../page/layout.ts'
import { notice } from '../page/notice.ts'
import { copyable, time } from '../page/text.ts'

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
  <pre>${WITH_CLIENT}</pre>
  <p>Without a library: <code>X-EV-Signature</code> is the HMAC-SHA256 of the raw body in lower-case hexadecimal, keyed with
    the full text of the secret. The headers <code>webhook-id</code>, <code>webhook-timestamp</code> and
    <code>webhook-signature</code> follow Standard Webhooks, which has libraries for most languages.</p>
  <pre>${BY_HAND}</pre>
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
