import { type Context, Hono } from 'hono'
import { html } from 'hono/html'
import type {
  DeliveryPage,
  Recovered,
  RotatedWebhook,
  Webhook,
  WebhookAnswer,
  WebhookList,
  WebhookTest,
} from '../../client/types.ts'
import { pluralize } from '../../platform/format.ts'
import { ApiProblem } from '../api.ts'
import type { Api, DashboardDeps, Env } from '../deps.ts'
import { problemWith, readNonce, sentForm } from '../page/form.ts'
import { type Html, isHtmx } from '../page/html.ts'
import { part } from '../page/layout.ts'
import { notice, Refusal } from '../page/notice.ts'
import { time } from '../page/text.ts'
import { redirectWithNote } from '../session/cookie.ts'
import { may } from '../session/signed-in.ts'
import { endpointPage } from './endpoint.ts'
import { bodyOf, draftOf, headersOf } from './endpoint-form.ts'
import { secretPage, testResult } from './endpoint-parts.ts'
import { CHANGED, pagePath, pathOf } from './log.ts'

/** Routes that change, test, rotate, recover and delete an endpoint. */
export function actionRoutes(deps: DashboardDeps): Hono<Env> {
  return new Hono<Env>()
    .post('/webhooks/:id', async c => {
      const id = c.req.param('id')
      const draft = draftOf(await sentForm(c))
      const { active: _, ...fields } = bodyOf(draft)
      const body = { ...fields, headers: headersOf(draft) }
      try {
        await c.get('api').ask<WebhookAnswer>(pathOf(id), { method: 'PATCH', body })
      } catch (error) {
        return endpointPage(c, deps, id, { draft, problem: problemWith(error) })
      }
      return redirectWithNote(c, pagePath(id), 'Webhook updated.')
    })
    .post('/webhooks/:id/switch', async c => {
      const id = c.req.param('id')
      const active = (await sentForm(c)).text('active') === 'true'
      await c.get('api').ask(pathOf(id), { method: 'PATCH', body: { active } })
      return redirectWithNote(
        c,
        pagePath(id),
        active ? ENABLED : 'Webhook disabled. No events are sent to it.',
      )
    })
    .post('/webhooks/:id/test', async c => {
      const id = c.req.param('id')
      const event = (await sentForm(c)).text('event')
      const body = event === '' ? {} : { event }
      const { data } = await c.get('api').ask<WebhookTest>(`${pathOf(id)}/test`, { body })
      if (!isHtmx(c)) {
        return c.redirect(`${pagePath(id)}?tested=${data.delivery_id}`, 303)
      }
      c.header('HX-Trigger', CHANGED)
      return part(c, testResult(data))
    })
    .post('/webhooks/:id/secret', async c => {
      const id = c.req.param('id')
      const sent = await sentForm(c)
      const body = { grace_period_seconds: Number(sent.text('grace')) }
      const options = { body, once: readNonce(sent) }
      const { data } = await c.get('api').ask<RotatedWebhook>(`${pathOf(id)}/secret`, options)
      return secretPage(c, {
        title: 'New secret',
        webhookId: data.id,
        url: data.url,
        secret: data.secret,
        previousUntil: body.grace_period_seconds === 0 ? null : data.previous_secret_expires_at,
      })
    })
    .post('/webhooks/:id/recover', async c => {
      const id = c.req.param('id')
      const body = { since: parseTime((await sentForm(c)).text('since')) }
      const { data } = await c.get('api').ask<Recovered>(`${pathOf(id)}/recover`, { body })
      return redirectWithNote(c, pagePath(id), recovered(data.recovered))
    })
    .post('/webhooks/:id/delete', async c => {
      await c.get('api').ask(pathOf(c.req.param('id')), { method: 'DELETE' })
      return redirectWithNote(c, '/webhooks', 'Webhook deleted.')
    })
}

const ENABLED = 'Webhook enabled. Pending deliveries resume, and new events are sent.'

/** Parses the value of a datetime-local field as UTC; throws a 400 Refusal if it is malformed. */
function parseTime(text: string): string {
  const at = Date.parse(`${text}Z`)
  if (!Number.isNaN(at)) return new Date(at).toISOString()
  throw new Refusal(
    400,
    `"${text.slice(0, 40)}" is not a valid time. Enter a UTC time such as 2026-03-21T10:30.`,
  )
}

const recovered = (count: number) =>
  count === 0
    ? 'No deliveries have failed since then. Nothing was resent.'
    : `Resending ${pluralize(count, 'delivery', 'deliveries')}.`

/** Returns the failing webhooks; none if the key may not read webhooks. */
export async function findFailingWebhooks(c: Context<Env>): Promise<readonly Webhook[]> {
  if (!may(c.get('user'), 'webhooks:read')) return []
  try {
    const { data } = await c.get('api').ask<WebhookList>('/v1/webhooks')
    return data.webhooks.filter(isFailing)
  } catch (error) {
    // An error must not fail the page: show it without the alert.
    if (error instanceof ApiProblem) return []
    throw error
  }
}

/** Renders the alert about other failing webhooks on the pages of a webhook. */
export async function webhookAlerts(
  c: Context<Env>,
  failing: readonly Webhook[],
): Promise<readonly Html[]> {
  if (!c.req.path.startsWith('/webhooks/')) return []
  const others = failing.filter(({ id }) => !`${c.req.path}/`.startsWith(`/webhooks/${id}/`))
  const [first] = others
  if (first === undefined) return []
  return [others.length === 1 ? await alert(c.get('api'), first) : several(others.length)]
}

const isFailing = ({ active, disabled_reason, failing_since }: Webhook) =>
  active ? failing_since !== null : disabled_reason !== null

async function alert(api: Api, webhook: Webhook): Promise<Html> {
  const { id, url, active, disabled_reason: reason, failing_since: since } = webhook
  const link = html`<a href="/webhooks/${id}">View deliveries</a>.`
  if (!active) {
    return notice('warn', html`Your webhook ${shortUrl(url)} was disabled: ${reason ?? ''} ${link}`)
  }
  const error = await lastError(api, id)
  return notice(
    'warn',
    html`Your webhook ${shortUrl(url)} has been failing since ${time(since)}${error === null ? '.' : html`: ${error}`} ${link}`,
  )
}

/** Returns the latest error of a failing endpoint, null if there is none. */
async function lastError(api: Api, id: string): Promise<string | null> {
  const query = { limit: DELIVERIES_SCANNED }
  const { data } = await api.ask<DeliveryPage>(`${pathOf(id)}/deliveries`, { query })
  return data.items.find(({ error }) => error !== null)?.error ?? null
}

/** More than one, as the newest delivery may not have been attempted yet. */
const DELIVERIES_SCANNED = 10

export const shortUrl = (url: string) =>
  url.length > URL_SHOWN ? `${url.slice(0, URL_SHOWN)}…` : url
/** Enough to recognize it: a URL may have 2,000 characters. */
const URL_SHOWN = 80

/** One alert for several webhooks: they usually fail for the same reason. */
const several = (count: number) =>
  notice(
    'warn',
    html`${count} of your webhooks are failing or were disabled. See <a href="/webhooks">your webhooks</a>.`,
  )
