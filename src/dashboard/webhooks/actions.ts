import { Hono } from 'hono'
import type { Recovered, RotatedWebhook, WebhookAnswer, WebhookTest } from '../../client/types.ts'
import { pluralize } from '../../platform/format.ts'
import type { DashboardDeps, Env } from '../deps.ts'
import { problemWith, sentForm } from '../page/form-data.ts'
import { readNonce } from '../page/form-nonce.ts'
import { part } from '../page/layout.ts'
import { Refusal } from '../page/refusal.ts'
import { leaveNote } from '../session/cookie.ts'
import { endpointPage, pathOf } from './endpoint.ts'
import { bodyOf, draftOf } from './endpoint-form.ts'
import { CHANGED } from './log.ts'
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
