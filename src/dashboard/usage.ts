import { type Context, Hono } from 'hono'
import { html } from 'hono/html'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import type {
  Counts,
  Credits,
  HistoryPage,
  Limit,
  Limits,
  Stats,
  Verification,
} from '../client/types.ts'
import { REASONS, VERDICT_BY_REASON } from '../engine/verdict/reason.ts'
import { toClass } from '../engine/verdict/verdict.ts'
import { DAY, SECOND } from '../platform/clock.ts'
import { formatDuration, formatNumber, formatPercent } from '../platform/format.ts'
import { queryOf } from './api.ts'
import type { DashboardDeps, Env } from './deps.ts'
import { bars } from './page/chart.ts'
import { field, problemWith, select } from './page/form.ts'
import { type Html, NOTHING } from './page/html.ts'
import { page, part } from './page/layout.ts'
import { empty, meanings, notice, reasonCell, reasonWord } from './page/notice.ts'
import { segment, tiles } from './page/parts.ts'
import { table } from './page/table.ts'
import { ago, badge, CLASS_NAMES, CLASSES, time } from './page/text.ts'

/** The Usage page: verifications, credits, limits and history of the account. */
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

/** The first is the default. */
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

const periods = (chosen: Period): Html =>
  segment(
    'Period',
    PERIODS.map(({ period, name }) => ({
      ...{ href: `/usage?period=${period}`, label: name, isCurrent: period === chosen },
    })),
  )

const hint = (baseUrl: string): Html => html`
  ${empty({
    title: 'No verifications in this period',
    text: 'Verifications from the dashboard, the API and lists are counted here by day, key and class.',
    action: html`<a class="button primary" href="/verify">Verify an address</a>`,
  })}
  <pre>curl ${baseUrl}/v1/verify/single -H "Authorization: Bearer $EV_API_KEY" \\
  -H "Content-Type: application/json" -d '{"email": "user@example.com"}'</pre>`

/** Renders the credit usage and what costs a credit. */
const creditCard = (credits: Credits['data']): Html => html`
  <section class="card">
    <h2>Credits today</h2>
    <dl class="figures">
      <div><dt>Used</dt><dd>${formatNumber(credits.credits_consumed)}</dd></div>
      <div><dt>Reserved for lists</dt><dd>${formatNumber(credits.credits_held)}</dd></div>
      <div><dt>Left</dt><dd>${credits.credits_balance === null ? 'Unlimited' : formatNumber(credits.credits_balance)}</dd></div>
    </dl>
    ${credits.credits_added === null ? unlimited(credits) : limited(credits, credits.credits_added)}
    <h3>What costs a credit</h3>
    <p>Each new definite result costs one credit. Unknown results, cached results, malformed addresses, duplicates in a
      list, and the sandbox are free. A list reserves the credits it may need and returns unused ones when it ends.</p>
  </section>`

const unlimited = ({ plan }: Credits['data']): Html =>
  html`<p>The plan “${plan}” has unlimited credits.</p>`

const limited = (
  { plan, credits_consumed, credits_held, resets_at }: Credits['data'],
  added: number,
): Html => html`
  ${meter({ used: credits_consumed + credits_held, limit: added })}
  <p>The plan “${plan}” includes ${formatNumber(added)} per day. Resets ${time(resets_at)}.</p>`

/** Renders the rate limits and their use; credits have their own card. */
function limitsCard(limits: readonly Limit[]): Html {
  const rates = limits.filter(({ name }) => name !== 'credits')
  return html`
    <section class="card">
      <h2>Limits</h2>
      ${rates.length === 0 ? OFF : html`${rates.map(one)} ${NOTE}`}
    </section>`
}

const OFF = html`<p>The administrator has turned off rate limits.</p>`

const NOTE = html`<p><small>For the key of this session and your IP address. Requests over a limit return 429 with a
  <code>Retry-After</code> header.</small></p>`

const one = ({ text, limit, remaining, window_seconds, resets_at }: Limit): Html => html`
  <h3>${text}</h3>
  ${meter({ used: limit - remaining, limit })}
  <p>${formatNumber(remaining)} of ${formatNumber(limit)} per ${formatDuration(window_seconds * SECOND)} left${
    remaining === limit ? '.' : html`. Resets ${time(resets_at)}.`
  }</p>`

type MeterValue = { readonly used: number; readonly limit: number }

/** Renders usage as a bar with a label. */
function meter({ used, limit }: MeterValue): Html {
  const share = limit === 0 ? 1 : Math.min(1, used / limit)
  const { label, kind } = meterLevel(share)
  return html`
    <svg class="meter" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
      <rect class="fill-${kind}" x="0" y="0" width="${(100 * share).toFixed(1)}" height="8" />
    </svg>
    <small>${formatPercent(share, 1)} used${label}</small>`
}

function meterLevel(share: number) {
  if (share >= 1) return { label: ': limit reached', kind: 'undeliverable' }
  if (share >= WARNING_SHARE) return { label: ': limit almost reached', kind: 'risky' }
  return { label: '', kind: 'deliverable' }
}

/** The threshold of the first quota webhook. */
const WARNING_SHARE = 0.8

/** Renders the totals of a period. */
const totals = (total: Counts): Html =>
  tiles([
    { label: 'Verifications', value: formatNumber(total.verifications) },
    ...CLASSES.map(kind => ({
      label: CLASS_NAMES[kind],
      value: formatNumber(total[kind]),
      note: formatPercent(total[kind], total.verifications),
    })),
    { label: 'From cache', value: formatNumber(total.cached) },
    { label: 'Credits used', value: formatNumber(total.credits) },
  ])

type Day = Stats['data']['days'][number]

/** Renders verifications by day as a table, from which `chart.js` draws the chart. */
const daysCard = (days: readonly Day[], total: Counts): Html => html`
  <section class="card">
    <h2>By day</h2>
    ${days.length > 1 ? chart(total) : NOTHING}
    <details class="numbers" open>
      <summary>Show as table</summary>
      <div class="scroll"><table id="days">
        <caption class="unseen">Verifications by day (UTC) and class</caption>
        <thead><tr>
          <th scope="col">Day (UTC)</th>
          ${CLASSES.map(kind => html`<th scope="col" class="number">${CLASS_NAMES[kind]}</th>`)}
          <th scope="col" class="number">All</th><th scope="col" class="number">Credits</th>
        </tr></thead>
        <tbody>${days.map(
          day => html`
            <tr>
              <th scope="row">${day.date}</th>
              ${CLASSES.map(kind => html`<td class="number">${formatNumber(day[kind])}</td>`)}
              <td class="number">${formatNumber(day.verifications)}</td><td class="number">${formatNumber(day.credits)}</td>
            </tr>`,
        )}</tbody>
      </table></div>
    </details>
  </section>`

/** Renders the chart container and its legend, which shows the numbers of the hovered day. */
const chart = (total: Counts): Html => html`
  <div class="chart" data-chart="days" aria-hidden="true"></div>
  <ul class="legend is-row" id="days-legend">
    <li class="day">All days</li>
    ${CLASSES.map(
      kind =>
        html`<li><span class="dot is-${kind}"></span>${CLASS_NAMES[kind]} <b>${formatNumber(total[kind])}</b></li>`,
    )}
  </ul>`

/** Renders verifications by key, busiest first. */
const keysCard = (keys: Stats['data']['keys']): Html => html`
  <section class="card">
    <h2>By key</h2>
    ${bars(
      'Verifications of each key, by class',
      keys
        .toSorted((a, b) => b.verifications - a.verifications)
        .map(key => ({
          label: key.key_name ?? `${key.key_id} (revoked)`,
          segments: CLASSES.map(kind => ({ value: key[kind], kind })),
        })),
    )}
  </section>`

type Rendered = { readonly body: Html; readonly status: ContentfulStatusCode }

/** Renders the history with its search form. */
async function historySection(c: Context<Env>, period: string): Promise<Rendered> {
  const filter = filterOf(c)
  const { body, status } = await historyPart(c, filter)
  return {
    status,
    body: html`
      <section>
        <h2>History</h2>
        <form method="get" action="/usage" class="filters" role="search" hx-get="/usage" hx-target="#${HISTORY_PART}"
          hx-swap="outerHTML settle:0ms" hx-trigger="submit, change" hx-push-url="true" hx-sync="this:queue last">
          <input type="hidden" name="period" value="${period}" />
          ${fields(filter)}
        </form>
        ${body}
      </section>`,
  }
}

/** ID of the fragment that htmx requests. */
const HISTORY_PART = 'history'

const NAMES = ['search', 'class', 'reason', 'source', 'from', 'to', 'sandbox', 'cursor'] as const

type Filter = Readonly<Partial<Record<(typeof NAMES)[number], string>>>

function filterOf({ req }: Context<Env>): Filter {
  const entries = NAMES.map(name => [name, req.query(name)?.trim() ?? ''] as const)
  return Object.fromEntries(entries.filter(([, value]) => value !== ''))
}

/** Renders the rows, or the error of a search that the API rejects. */
async function historyPart(c: Context<Env>, filter: Filter): Promise<Rendered> {
  const { from, to, sandbox, ...rest } = filter
  const query = { ...rest, since: from, until: to === undefined ? to : dayAfter(to) }
  const period = c.req.query('period')
  const wrap = (inner: Html) => html`<div id="${HISTORY_PART}">${inner}</div>`
  try {
    const options = { query, sandbox: sandbox === 'true' }
    const { data } = await c.get('api').ask<HistoryPage>('/v1/history', options)
    return { body: wrap(rows(data, { filter, period })), status: 200 }
  } catch (error) {
    const { message, status } = problemWith(error)
    return { body: wrap(notice('bad', message)), status: status as ContentfulStatusCode }
  }
}

/** Returns the next day, as the end date is inclusive. The API rejects text that is not a date. */
function dayAfter(day: string): string {
  const at = Date.parse(day)
  return Number.isNaN(at) ? day : new Date(at + DAY).toISOString().slice(0, DAY_LENGTH)
}

const DAY_LENGTH = 'YYYY-MM-DD'.length

const fields = (filter: Filter): Html => html`
  <div class="row">
    ${field({ label: 'Part of the address', name: 'search', type: 'search', value: filter.search ?? '' })}
    ${choose(
      'Class',
      'class',
      CLASSES.map((kind): Named => [kind, CLASS_NAMES[kind]]),
      filter.class,
    )}
    ${choose(
      'Reason',
      'reason',
      REASONS.map(reason => [reason, reasonWord(reason)]),
      filter.reason,
    )}
    ${choose('Source', 'source', Object.entries(SOURCE_NAMES), filter.source)}
    ${field({ label: 'From (UTC)', name: 'from', type: 'date', value: filter.from ?? '' })}
    ${field({ label: 'To (UTC)', name: 'to', type: 'date', value: filter.to ?? '' })}
  </div>
  <p><label class="tick"><input type="checkbox" name="sandbox" value="true"
    ${filter.sandbox === 'true' ? html`checked` : NOTHING} /> Sandbox</label>
    <button>Search</button></p>`

type Named = readonly [value: string, label: string]

const choose = (label: string, name: string, values: readonly Named[], chosen = '') =>
  select({
    ...{ label, name },
    choices: ([['', 'All'], ...values] as const).map(([value, text]) => ({
      ...{ value, label: text, checked: value === chosen },
    })),
  })

type PageState = { readonly filter: Filter; readonly period: string | undefined }

function rows(
  { items, next_cursor: next }: HistoryPage['data'],
  { filter, period }: PageState,
): Html {
  const urlAt = (cursor: string | null) =>
    `/usage${queryOf({ period, ...filter, cursor })}#${HISTORY_PART}`
  return html`
    ${items.length === 0 ? noResults(filter, next !== null) : historyTable(items)}
    <p class="actions">
      ${filter.cursor === undefined ? NOTHING : html`<a class="button" href="${urlAt(null)}">Newest</a>`}
      ${next === null ? NOTHING : html`<a class="button" href="${urlAt(next)}">${items.length === 0 ? 'Search further back' : 'Older'}</a>`}
    </p>`
}

function noResults(filter: Filter, isMore: boolean): Html {
  if (isMore) return html`<p role="status">No matches so far. The history goes back further.</p>`
  const { cursor: _, ...criteria } = filter
  return Object.keys(criteria).length > 0
    ? html`<p role="status">No matches.</p>`
    : html`<p>No verifications yet. Verified addresses are listed here for the retention period of this service.</p>`
}

const historyTable = (items: readonly Verification[]): Html => html`
  ${table({
    caption: 'Verifications, newest first',
    rows: items,
    columns: [
      { label: 'Address', kind: 'name', cell: ({ email }) => email },
      { label: 'Class', cell: one => badge(classOf(one)) },
      { label: 'Reason', cell: ({ reason }) => reasonCell(reason) },
      { label: 'Source', cell: sourceOf },
      { label: 'Time', cell: ({ created_at: at }) => ago(at) },
    ],
  })}
  ${meanings(items.map(({ reason }) => reason))}`

const classOf = ({ reason, valid, risk_level: risk }: Verification) =>
  toClass({ ...VERDICT_BY_REASON[reason], valid, risk })

const SOURCE_NAMES: Readonly<Record<Verification['source'], string>> = {
  ...{ single: 'Single', bulk: 'Bulk', batch: 'Batch', file: 'List' },
}

function sourceOf({ source, job_id: jobId, cached }: Verification): Html {
  const name = SOURCE_NAMES[source]
  const link =
    jobId === null || source === 'single' ? name : html`<a href="/lists/${jobId}">${name}</a>`
  return html`${link}${cached ? html` <small>cached</small>` : NOTHING}`
}
