import { type Context, Hono } from 'hono'
import { html } from 'hono/html'
import type { Credits, Limit, Limits, Stats } from '../../client/types.ts'
import { SECOND } from '../../platform/clock.ts'
import { formatDuration, formatNumber, formatPercent } from '../../platform/format.ts'
import type { DashboardDeps, Env } from '../deps.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { page, part } from '../page/layout.ts'
import { empty } from '../page/notice.ts'
import { time } from '../page/text.ts'
import { filterOf, HISTORY_PART, historyPart, historySection } from './history.ts'
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

/** What of the plan is used and left, and what costs anything at all. */
const creditCard = (credits: Credits['data']): Html => html`
  <section class="card">
    <h2>Credits of today</h2>
    <dl class="figures">
      <div><dt>Used</dt><dd>${formatNumber(credits.credits_consumed)}</dd></div>
      <div><dt>Held for lists under way</dt><dd>${formatNumber(credits.credits_held)}</dd></div>
      <div><dt>Left</dt><dd>${credits.credits_balance === null ? 'without limit' : formatNumber(credits.credits_balance)}</dd></div>
    </dl>
    ${credits.credits_added === null ? unlimited(credits) : limited(credits, credits.credits_added)}
    <h3>What costs a credit</h3>
    <p>One credit for each definite answer that was found out anew. What could not be found out (unknown), what was known
      from before, malformed addresses, duplicates in a list, and the sandbox cost nothing. A list sets aside what it may
      need; what it does not use comes back when it ends.</p>
  </section>`

const unlimited = ({ plan }: Credits['data']): Html =>
  html`<p>The plan “${plan}” has no end to them.</p>`

const limited = (
  { plan, credits_consumed, credits_held, resets_at }: Credits['data'],
  added: number,
): Html => html`
  ${meter({ used: credits_consumed + credits_held, limit: added })}
  <p>The plan “${plan}” gives ${formatNumber(added)} a day. They are given anew ${time(resets_at)}.</p>`

/** All limits of how often may be asked, and how close they are; the credits have a card of their own. */
function limitsCard(limits: readonly Limit[]): Html {
  const rates = limits.filter(({ name }) => name !== 'credits')
  return html`
    <section class="card">
      <h2>Limits</h2>
      ${rates.length === 0 ? OFF : html`${rates.map(one)} ${NOTE}`}
    </section>`
}

const OFF = html`<p>Whoever runs this service has switched them off.</p>`

const NOTE = html`<p><small>As they stand for the key of this session and the address that you come from. Who asks more
  often is refused with 429, and told when to come again.</small></p>`

const one = ({ text, limit, remaining, window_seconds, resets_at }: Limit): Html => html`
  <h3>${text}</h3>
  ${meter({ used: limit - remaining, limit })}
  <p>${formatNumber(remaining)} of ${formatNumber(limit)} in ${formatDuration(window_seconds * SECOND)} are left${
    remaining === limit ? '.' : html`, all again ${time(resets_at)}.`
  }</p>`

type Used = { readonly used: number; readonly limit: number }

/** How much of something is used, as a bar and in words. */
function meter({ used, limit }: Used): Html {
  const share = limit === 0 ? 1 : Math.min(1, used / limit)
  const { word, kind } = closeness(share)
  return html`
    <svg class="meter" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
      <rect class="fill-${kind}" x="0" y="0" width="${(100 * share).toFixed(1)}" height="8" />
    </svg>
    <small>${formatPercent(share, 1)} used: ${word}</small>`
}

function closeness(share: number) {
  if (share >= 1) return { word: 'nothing is left', kind: 'undeliverable' }
  if (share >= CLOSE) return { word: 'the end is close', kind: 'risky' }
  return { word: 'enough is left', kind: 'deliverable' }
}

/** As the first warning of webhooks has it. */
const CLOSE = 0.8
