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
import { formatDuration, formatNumber, formatPercent, pluralize } from '../platform/format.ts'
import { formatPlan } from '../platform/text.ts'
import { queryOf } from './api.ts'
import type { DashboardDeps, Env } from './deps.ts'
import { bars, dayChart, meter } from './page/chart.ts'
import {
  field,
  filterSelect,
  problemWith,
  type QueryFilter,
  readFilter,
  withLabel,
} from './page/form.ts'
import { type Html, isHtmx, NOTHING } from './page/html.ts'
import { page, part } from './page/layout.ts'
import { empty, meanings, notice, reasonCell, reasonWord } from './page/notice.ts'
import { card, facts, pageLinks, segment, tiles } from './page/parts.ts'
import { table } from './page/table.ts'
import {
  ACTION_NAMES,
  ago,
  badge,
  CLASS_NAMES,
  CLASSES,
  codeBlock,
  NO_ADDRESS,
} from './page/text.ts'

/** The Usage page: verifications, credits, limits and history of the account. */
export function usageRoutes({ settings }: DashboardDeps): Hono<Env> {
  return new Hono<Env>().get('/usage', async c => {
    const isForHistory = c.req.header('HX-Target') === HISTORY_PART
    if (isForHistory && isHtmx(c)) {
      const { body, status } = await historyPart(c, readFilter(c, FILTERS))
      return part(c, body, status)
    }
    return usagePage(c, settings.baseUrl)
  })
}

type Period = Stats['data']['period']

const PERIODS: readonly { readonly period: Period; readonly name: string }[] = [
  { period: 'day', name: 'Today' },
  { period: 'week', name: '7 days' },
  { period: 'month', name: '30 days' },
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
  const { total, days } = stats.data
  return page(c, {
    title: 'Usage',
    scripts: days.length > 1 && total.verifications > 0 ? ['chart.js'] : [],
    body: html`
      ${history.body} ${statistics(stats.data, baseUrl)}
      ${creditCard(credits.data)} ${limitsCard(limits.data.limits)}`,
    status: history.status,
  })
}

/** Renders the verifications of a period by class, day and key. */
const statistics = ({ period, total, days, keys }: Stats['data'], baseUrl: string): Html => html`
  <section id="statistics">
    <div class="row is-level heading"><h2>Statistics</h2> ${periods(period)}</div>
    ${
      total.verifications === 0
        ? hint(baseUrl)
        : html`${totals(total)}
          ${card({ title: 'Verifications by day', body: dayChart(days, total) })} ${keysCard(keys)}`
    }
  </section>`

const periods = (chosen: Period): Html =>
  segment(
    'Period',
    PERIODS.map(({ period, name }) => ({
      href: `/usage?period=${period}#statistics`,
      label: name,
      isCurrent: period === chosen,
    })),
  )

const hint = (baseUrl: string): Html => html`
  ${empty({
    title: 'No verifications in this period',
    text: 'Verifications from the dashboard, the API and lists are counted here by day, key and class.',
    action: html`<a class="button primary" href="/verify">Verify an address</a>`,
  })}
  ${card({
    title: 'Verify with the API',
    body: codeBlock(`curl ${baseUrl}/v1/verify/single -H "Authorization: Bearer $EV_KEY" \\
  -H "Content-Type: application/json" -d '{"email": "user@example.com"}'`),
  })}`

/** Renders the credit usage and what costs a credit. */
const creditCard = (credits: Credits['data']): Html =>
  card({
    title: 'Credits today',
    body: html`
      ${facts([
        ['Used', formatNumber(credits.credits_consumed)],
        ['Reserved for lists', formatNumber(credits.credits_held)],
        ['Left', creditsLeft(credits)],
      ])}
      ${creditMeter(credits)}
      <h3>What costs a credit</h3>
      <p>Each new definite result costs one credit. Unknown results, cached results, malformed addresses, duplicates in
        a list, and the sandbox are free. A list reserves the credits it may need and returns unused ones when it ends.</p>`,
  })

export const creditsLeft = ({ credits_balance: left }: Credits['data']): string =>
  left === null ? 'Unlimited' : formatNumber(left)

/** Renders the credits of the plan and their use. */
export function creditMeter(credits: Credits['data']): Html {
  const { plan, credits_added: limit, credits_consumed, credits_held, resets_at } = credits
  if (limit === null) return html`<p>The ${formatPlan(plan)} has unlimited credits.</p>`
  return html`
    ${meter({ used: credits_consumed + credits_held, limit })}
    <p>The ${formatPlan(plan)} includes ${formatNumber(limit)} credits per day. Resets ${ago(resets_at)}.</p>`
}

/** Renders the limits and their use; credits have their own card. */
function limitsCard(limits: readonly Limit[]): Html {
  const lasting = limits.filter(({ window_seconds }) => window_seconds === null)
  const rates = limits.filter(one => one.name !== 'credits' && !lasting.includes(one))
  return card({
    title: 'Limits',
    body: html`
      ${rates.length === 0 ? OFF : NOTE}
      <div class="limits">${[...rates, ...lasting].map(limitMeter)}</div>`,
  })
}

const OFF = html`<p>The administrator has turned off rate limits.</p>`

const NOTE = html`<p>Rates are those of the key of this session and your IP address. A request over a limit is answered with 429 and a
  <code>Retry-After</code> header.</p>`

const limitMeter = ({ text, limit, remaining, window_seconds, resets_at }: Limit): Html => html`
  <div><h3>${text}</h3>
  ${meter({ used: limit - remaining, limit })}
  <p>${formatNumber(remaining)} of ${formatNumber(limit)}${
    window_seconds === null ? '' : ` per ${formatDuration(window_seconds * SECOND)}`
  } left${remaining === limit || resets_at === null ? '.' : html`. Resets ${ago(resets_at)}.`}</p></div>`

/** Renders the totals of a period. */
const totals = (total: Counts): Html =>
  tiles([
    {
      label: 'Verifications',
      value: formatNumber(total.verifications),
      note: `${formatNumber(total.cached)} from cache · ${pluralize(total.credits, 'credit')}`,
    },
    ...CLASSES.map(kind => ({
      label: CLASS_NAMES[kind],
      value: formatNumber(total[kind]),
      note: formatPercent(total[kind], total.verifications),
    })),
  ])

/** Renders verifications by key, busiest first. */
const keysCard = (keys: Stats['data']['keys']): Html =>
  card({
    title: 'Verifications by key',
    body: bars(
      'Verifications of each key, by class',
      keys
        .toSorted((a, b) => b.verifications - a.verifications)
        .map(key => ({
          label: key.key_name ?? `${key.key_id} (revoked)`,
          segments: CLASSES.map(kind => ({ value: key[kind], kind })),
        })),
    ),
  })

type Rendered = { readonly body: Html; readonly status: ContentfulStatusCode }

/** Renders the history with its search form. */
async function historySection(c: Context<Env>, period: string): Promise<Rendered> {
  const filter = readFilter(c, FILTERS)
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

const FILTERS = ['search', 'class', 'reason', 'source', 'from', 'to', 'sandbox', 'cursor'] as const

type Filter = QueryFilter<(typeof FILTERS)[number]>

/** Few enough that the statistics below are near. */
const PAGE_ROWS = 10

/** Renders the rows, or the error of a search that the API rejects. */
async function historyPart(c: Context<Env>, filter: Filter): Promise<Rendered> {
  const { from, to, sandbox, ...rest } = filter
  const query = {
    ...rest,
    limit: PAGE_ROWS,
    since: from,
    until: to === undefined ? to : dayAfter(to),
  }
  const period = c.req.query('period')
  const wrap = (inner: Html) => html`<div id="${HISTORY_PART}">${inner}</div>`
  try {
    const options = { query, sandbox: sandbox === 'true' }
    const { data } = await c.get('api').ask<HistoryPage>('/v1/history', options)
    return { body: wrap(rows(data, { filter, period })), status: 200 }
  } catch (error) {
    const problem = problemWith(error)
    const body = wrap(notice('bad', withLabel(problem, LABELS)))
    return { body, status: problem.status as ContentfulStatusCode }
  }
}

/** Returns the next day, as the end date is inclusive. The API rejects text that is not a day. */
function dayAfter(day: string): string {
  const at = DAY_FORMAT.test(day) && day < DAY_MAX ? Date.parse(day) : Number.NaN
  return Number.isNaN(at) ? day : new Date(at + DAY).toISOString().slice(0, DAY_LENGTH)
}

const DAY_FORMAT = /^\d{4}-\d\d-\d\d$/
/** The next day would have a year of five digits. */
const DAY_MAX = '9999-12-31'
const DAY_LENGTH = 'YYYY-MM-DD'.length

/** Form labels by API parameter. */
const LABELS = { since: 'From (UTC)', until: 'To (UTC)' }

const fields = (filter: Filter): Html => html`
  <div class="row">
    ${field({ label: 'Part of the address', name: 'search', type: 'search', value: filter.search ?? '' })}
    ${filterSelect(
      'Class',
      'class',
      CLASSES.map(kind => [kind, CLASS_NAMES[kind]]),
      filter.class,
    )}
    ${filterSelect(
      'Reason',
      'reason',
      REASONS.map(reason => [reason, reasonWord(reason)]),
      filter.reason,
    )}
    ${filterSelect('Source', 'source', Object.entries(SOURCE_NAMES), filter.source)}
    ${field({ label: LABELS.since, name: 'from', type: 'date', value: filter.from ?? '' })}
    ${field({ label: LABELS.until, name: 'to', type: 'date', value: filter.to ?? '' })}
  </div>
  <p><label class="tick"><input type="checkbox" name="sandbox" value="true"
    ${filter.sandbox === 'true' ? html`checked` : NOTHING} /> Sandbox</label>
    <button>Search</button></p>`

type PageState = { readonly filter: Filter; readonly period: string | undefined }

function rows(
  { items, next_cursor: next }: HistoryPage['data'],
  { filter, period }: PageState,
): Html {
  const urlAt = (cursor: string | null) =>
    `/usage${queryOf({ period, ...filter, cursor })}#${HISTORY_PART}`
  return html`
    ${items.length === 0 ? noResults(filter, next !== null) : html`${historyTable(items)} ${meanings(items.map(({ reason }) => reason))}`}
    ${pageLinks({
      cursor: filter.cursor,
      next,
      urlAt,
      older: items.length === 0 ? 'Search further back' : 'Older',
    })}`
}

function noResults(filter: Filter, isMore: boolean): Html {
  if (isMore) return html`<p role="status">No matches so far. The history goes back further.</p>`
  const { cursor: _, ...criteria } = filter
  return Object.keys(criteria).length > 0
    ? html`<p role="status">No matches.</p>`
    : html`<p>No verifications yet. Verified addresses are listed here for the retention period of this service.</p>`
}

export const historyTable = (items: readonly Verification[]): Html =>
  table({
    caption: 'Verifications, newest first',
    rows: items,
    columns: [
      { label: 'Address', kind: 'name', cell: ({ email }) => email || NO_ADDRESS },
      { label: 'Class', cell: one => badge(classOf(one)) },
      { label: 'Reason', cell: ({ reason }) => reasonCell(reason) },
      { label: 'Action', cell: ({ action }) => ACTION_NAMES[action] },
      { label: 'Source', cell: sourceOf },
      { label: 'Time', cell: ({ created_at: at }) => ago(at) },
    ],
  })

export const classOf = ({ reason, valid, risk_level: risk }: Verification) =>
  toClass({ ...VERDICT_BY_REASON[reason], valid, risk })

const SOURCE_NAMES: Readonly<Record<Verification['source'], string>> = {
  single: 'Single',
  bulk: 'Bulk',
  batch: 'Batch',
  file: 'File',
}

function sourceOf({ source, job_id: jobId, cached }: Verification): Html {
  const name = SOURCE_NAMES[source]
  const link =
    jobId === null || source === 'single' ? name : html`<a href="/lists/${jobId}">${name}</a>`
  return html`${link}${cached ? html` <small>cached</small>` : NOTHING}`
}
