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
  /** Until when the secret before it holds, too; null: there was none, or it is over. */
  readonly previousUntil: string | null
}

/** Shows a secret, this once: it is in this answer and nowhere else. */
export const secretPage = (c: Context<Env>, o: Shown) =>
  page(c, {
    title: o.title,
    body: html`
      ${notice('warn', 'This secret is shown this once. Keep it where your program finds it, now.')}
      <p>${copyable(o.secret)}</p>
      <p>It signs what is sent to <b>${o.url}</b>.
        ${o.previousUntil === null ? NOTHING : html`The one before it holds too until ${time(o.previousUntil)}.`}</p>
      <p><a class="button primary" href="/webhooks/${o.webhookId}">I have it: go on</a></p>
      ${howToVerify()}`,
  })

/** How a receiver tells what is ours from what is not. */
export const howToVerify = (): Html => html`
  <h2>Check the signature before you believe anything</h2>
  <p>With the client of ev, which takes the body as it came, before it is parsed:</p>
  <pre>${WITH_CLIENT}</pre>
  <p>Without a library: <code>X-EV-Signature</code> is the HMAC-SHA256 of the raw body in lower-case hexadecimal, keyed with
    the whole text of the secret. The headers <code>webhook-id</code>, <code>webhook-timestamp</code> and
    <code>webhook-signature</code> are those of Standard Webhooks, for which most languages have a library.</p>
  <pre>${BY_HAND}</pre>
  <p>Answer with any 2xx within 30 seconds, and do the work afterwards. The same event may come twice: it then has the
    same <code>event_id</code>.</p>`

const WITH_CLIENT = `import { verifyWebhook } from 'ev/client'

app.post('/hook', express.raw({ type: 'application/json' }), async (request, response) => {
  const secret = process.env.EV_WEBHOOK_SECRET
  const event = await verifyWebhook(request.body, request.headers, secret).catch(console.error)
  if (!event) return response.sendStatus(401)
  response.sendStatus(204)
  if (await isNew(event.event_id)) await handle(event)
})`

const BY_HAND = `const expected = createHmac('sha256', secret).update(rawBody).digest()
const given = Buffer.from(headers['x-ev-signature'] ?? '', 'hex')
const isOurs = given.length === expected.length && timingSafeEqual(given, expected)`
