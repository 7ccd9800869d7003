import type { Context } from 'hono'
import { html } from 'hono/html'
import type { DeliveryPage, Webhook, WebhookList } from '../../client/types.ts'
import { type Api, ApiProblem } from '../api.ts'
import type { Env } from '../deps.ts'
import type { Html } from '../page/html.ts'
import { notice } from '../page/notice.ts'
import { time } from '../page/text.ts'
import { may } from '../session/signed-in.ts'
import { pathOf } from './endpoint.ts'

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
