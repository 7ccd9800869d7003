import type { Context } from 'hono'
import { Hono } from 'hono'
import { html } from 'hono/html'
import type { CreatedWebhook } from '../../client/types.ts'
import type { ApiProblem } from '../api.ts'
import type { DashboardDeps, Env } from '../deps.ts'
import { form } from '../page/form.ts'
import { problemWith, sentForm } from '../page/form-data.ts'
import { nonceField, readNonce } from '../page/form-nonce.ts'
import { NOTHING } from '../page/html.ts'
import { page } from '../page/layout.ts'
import { notice } from '../page/notice.ts'
import { bodyOf, type Draft, draftOf, endpointFields } from './endpoint-form.ts'
import { secretPage } from './secret.ts'

/** Making an endpoint. */
export function createRoutes(deps: DashboardDeps): Hono<Env> {
  return new Hono<Env>()
    .get('/webhooks/new', c => formPage(c, deps, { draft: UNWRITTEN }))
    .post('/webhooks', async c => {
      const sent = await sentForm(c)
      const [draft, once] = [draftOf(sent), readNonce(sent)]
      try {
        const options = { body: bodyOf(draft), once }
        const { data } = await c.get('api').ask<CreatedWebhook>('/v1/webhooks', options)
        return await secretPage(c, {
          ...{ title: 'The webhook is made', webhookId: data.id, url: data.url },
          ...{ secret: data.secret, previousUntil: null },
        })
      } catch (error) {
        return formPage(c, deps, { draft, once, problem: problemWith(error) })
      }
    })
}

const UNWRITTEN: Draft = { url: '', events: ['batch.completed'], description: '', active: true }

type Shown = {
  readonly draft: Draft
  readonly once?: string | undefined
  readonly problem?: ApiProblem
}

async function formPage(
  c: Context<Env>,
  { random }: DashboardDeps,
  { draft, once, problem }: Shown,
): Promise<Response> {
  const fields = await endpointFields(c, draft, { isNew: true })
  return page(c, {
    title: 'New webhook',
    body: html`
      ${problem === undefined ? NOTHING : notice('bad', problem.message)}
      ${form(c, '/webhooks', html`${nonceField(random, { once, problem })} ${fields} <button class="primary">Make the webhook</button>`)}
      <p><small>Its secret is shown on the next page, once.</small></p>`,
    ...(problem && { status: problem.status as 400 }),
  })
}
