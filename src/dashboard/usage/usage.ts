import type { Context } from 'hono'
import { Hono } from 'hono'
import { html } from 'hono/html'
import type { Credits, Limits, Stats } from '../../client/types.ts'
import type { DashboardDeps, Env } from '../deps.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { page, part } from '../page/layout.ts'
import { empty } from '../page/notice.ts'
import { creditCard } from './credits.ts'
import { filterOf, HISTORY_PART, historyPart, historySection } from './history.ts'
import { limitsCard } from './limits.ts'
import { daysCard, keysCard, totals } from './usage-counts.ts'

/** What an account verified, what that cost, and how much is left. */
export function usageRoutes({ settings }: DashboardDeps): Hono<Env> {
  return new Hono<Env>().get('/usage', async c => {
    const isForHistory = c.req.header('HX-Target') === HISTORY_PART
    if (isForHistory && c.req.header('HX-Request') === 'true') {
      const { body, status } = await historyPart(c, filterOf(c))
      return part(c, body, status)
    }
    return usagePage(c, settings.baseUrl)
  })
}

type Period = Stats['data']['period']

/** The first is shown where nobody says. */
const PERIODS: readonly { readonly period: Period; readonly name: string }[] = [
  { period: 'week', name: '7 days' },
  { period: 'month', name: '30 days' },
  { period: 'day', name: 'Today' },
]

async function usagePage(c: Context<Env>, baseUrl: string): Promise<Response> {
  const api = c.get('api')
  const period = PERIODS.find(one => one.period === c.req.query('period'))?.period ?? 'week'
  const [stats, credits, limits, history] = await Promise.all([
    api.ask<Stats>('/v1/stats', { query: { period } }),
    api.ask<Credits>('/v1/credits'),
    api.ask<Limits>('/v1/limits'),
    historySection(c, period),
  ])
  const { total, days, keys } = stats.data
  return page(c, {
    title: 'Usage',
    actions: periods(period),
    scripts: days.length > 1 && total.verifications > 0 ? ['chart.js'] : [],
    body: html`
      ${
        total.verifications === 0
          ? hint(baseUrl)
          : html`${totals(total)} ${daysCard(days, total)} ${keysCard(keys)}`
      }
      <div class="grid">${creditCard(credits.data)} ${limitsCard(limits.data.limits)}</div>
      ${history.body}`,
    status: history.status,
  })
}

const periods = (chosen: Period): Html => html`
  <nav aria-label="Period" class="row">${PERIODS.map(
    ({ period, name }) =>
      html`<a class="button" href="/usage?period=${period}" ${period === chosen ? html`aria-current="page"` : NOTHING}>${name}</a>`,
  )}</nav>`

const hint = (baseUrl: string): Html => html`
  ${empty({
    title: 'Nothing was verified in this time',
    text: 'What is verified, by pages, programs and lists, is counted here by day, by key and by what came of it.',
    action: html`<a class="button primary" href="/verify">Verify an address</a>`,
  })}
  <pre>curl ${baseUrl}/v1/verify/single -H "Authorization: Bearer $EV_API_KEY" \\
  -H "Content-Type: application/json" -d '{"email": "user@example.com"}'</pre>`
