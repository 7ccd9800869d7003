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
import type { Html } from '../page/html.ts'
import { part } from '../page/layout.ts'
import { notice, Refusal } from '../page/notice.ts'
import { time } from '../page/text.ts'
import { leaveNote } from '../session/cookie.ts'
import { may } from '../session/signed-in.ts'
import { endpointPage } from './endpoint.ts'
import { pathOf, CHANGED } from './log.ts'
import { bodyOf, draftOf } from './endpoint-form.ts'
import { secretPage } from './secret.ts'
import { outcome } from './test-outcome.ts'

/** What can be done with an endpoint. */
export function actionRoutes(deps: DashboardDeps): Hono<Env> {
  return new Hono<Env>()
    .post('/webhooks/:id', async c => {
      const id = c.req.param('id')
      const draft = draftOf(await sentForm(c))
      const { active: _, ...body } = bodyOf(draft)
      try {
        await c.get('api').ask<WebhookAnswer>(pathOf(id), { method: 'PATCH', body })
      } catch (error) {
        return endpointPage(c, deps, id, { draft, problem: problemWith(error) })
      }
      leaveNote(c, 'The webhook is changed.')
      return c.redirect(`/webhooks/${encodeURIComponent(id)}`, 303)
    })
    .post('/webhooks/:id/switch', async c => {
      const id = c.req.param('id')
      const active = (await sentForm(c)).text('active') === 'true'
      await c.get('api').ask(pathOf(id), { method: 'PATCH', body: { active } })
      leaveNote(c, active ? SWITCHED_ON : 'The webhook is off: nothing is sent to it.')
      return c.redirect(`/webhooks/${encodeURIComponent(id)}`, 303)
    })
    .post('/webhooks/:id/test', async c => {
      const id = c.req.param('id')
      const { data } = await c.get('api').ask<WebhookTest>(`${pathOf(id)}/test`, { method: 'POST' })
      if (c.req.header('HX-Request') !== 'true') {
        return c.redirect(`/webhooks/${encodeURIComponent(id)}?tested=${data.delivery_id}`, 303)
      }
      c.header('HX-Trigger', CHANGED)
      return part(c, outcome(data))
    })
    .post('/webhooks/:id/secret', async c => {
      const id = c.req.param('id')
      const sent = await sentForm(c)
      const body = { grace_period_seconds: Number(sent.text('grace')) }
      const options = { body, once: readNonce(sent) }
      const { data } = await c.get('api').ask<RotatedWebhook>(`${pathOf(id)}/secret`, options)
      return secretPage(c, {
        ...{ title: 'The new secret', webhookId: data.id, url: data.url, secret: data.secret },
        previousUntil: body.grace_period_seconds === 0 ? null : data.previous_secret_expires_at,
      })
    })
    .post('/webhooks/:id/recover', async c => {
      const id = c.req.param('id')
      const body = { since: pointOf((await sentForm(c)).text('since')) }
      const { data } = await c.get('api').ask<Recovered>(`${pathOf(id)}/recover`, { body })
      leaveNote(c, recovered(data.recovered))
      return c.redirect(`/webhooks/${encodeURIComponent(id)}`, 303)
    })
    .post('/webhooks/:id/delete', async c => {
      await c.get('api').ask(pathOf(c.req.param('id')), { method: 'DELETE' })
      leaveNote(c, 'The webhook is deleted.')
      return c.redirect('/webhooks', 303)
    })
}

const SWITCHED_ON =
  'The webhook is on: what was on its way goes on, and what happens from now on is sent.'

/** What a field of HTML has, taken as UTC. */
function pointOf(text: string): string {
  const at = Date.parse(`${text}Z`)
  if (!Number.isNaN(at)) return new Date(at).toISOString()
  throw new Refusal(
    400,
    `“${text.slice(0, 40)}” is no time. Write one such as 2026-03-21T10:30, in UTC.`,
  )
}

const recovered = (howMany: number) =>
  howMany === 0
    ? 'Nothing has failed since then, so nothing is sent again.'
    : `${pluralize(howMany, 'delivery is', 'deliveries are')} sent again.`

/** What every page tells of webhooks in trouble: nothing, where there is none or the key may not see them. */
export async function webhookAlerts(c: Context<Env>): Promise<readonly Html[]> {
  // Their own pages tell more of them.
  if (c.req.path === '/webhooks' || !may(c.get('user'), 'webhooks:read')) return []
  const api = c.get('api')
  try {
    const { data } = await api.ask<WebhookList>('/v1/webhooks')
    const elsewhere = data.webhooks.filter(
      ({ id }) => !`${c.req.path}/`.startsWith(`/webhooks/${id}/`),
    )
    const [first, ...others] = elsewhere.filter(isFailing)
    if (first === undefined) return []
    return [others.length === 0 ? await alert(api, first) : several(others.length + 1)]
  } catch (error) {
    // A page is shown without its banner rather than not at all.
    if (error instanceof ApiProblem) return []
    throw error
  }
}

const isFailing = ({ active, disabled_reason, failing_since }: Webhook) =>
  active ? failing_since !== null : disabled_reason !== null

async function alert(api: Api, webhook: Webhook): Promise<Html> {
  const { id, url, active, disabled_reason: reason, failing_since: since } = webhook
  const link = html`<a href="/webhooks/${id}">Look at its deliveries</a>.`
  if (!active) {
    return notice(
      'warn',
      html`Your webhook ${shortUrl(url)} was switched off: ${reason ?? ''} ${link}`,
    )
  }
  const error = await lastError(api, id)
  return notice(
    'warn',
    html`Your webhook ${shortUrl(url)} has failed since ${time(since)}${error === null ? '.' : html`: ${error}`} ${link}`,
  )
}

/** What was wrong the last time; asked only of an endpoint that fails. */
async function lastError(api: Api, id: string): Promise<string | null> {
  const query = { limit: LOOKED_AT }
  const { data } = await api.ask<DeliveryPage>(`${pathOf(id)}/deliveries`, { query })
  return data.items.find(({ error }) => error !== null)?.error ?? null
}

/** The newest may not have been tried yet. */
const LOOKED_AT = 10

const shortUrl = (url: string) => (url.length > URL_SHOWN ? `${url.slice(0, URL_SHOWN)}…` : url)
/** Enough to know it by: URLs may have two thousand characters. */
const URL_SHOWN = 80

/** Where more are in trouble it is seldom for reasons of their own: told one by one they would fill each page. */
const several = (howMany: number) =>
  notice(
    'warn',
    html`${howMany} of your webhooks fail, or were switched off: look at <a href="/webhooks">your webhooks</a>.`,
  )
