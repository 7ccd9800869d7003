import { type Context, Hono } from 'hono'
import { html } from 'hono/html'
import type {
  Credits,
  HistoryPage,
  JobPage,
  Limit,
  Limits,
  ListedJob,
  Stats,
  Webhook,
} from '../client/types.ts'
import type { MachineStatus } from '../engine/machine-status.ts'
import { formatNumber, formatPercent, formatProgress, pluralize } from '../platform/format.ts'
import { formatPlan, sanitizeText } from '../platform/text.ts'
import type { DashboardDeps, Env } from './deps.ts'
import { HEALTH_LINK, machineItems } from './health/machine.ts'
import type { HealthSource, OperatorsStatus, PeerBlock } from './health/source.ts'
import { ALL_JOBS, isActive, listLink, stateBadge, titleOf } from './lists/charts.ts'
import { bar, dayChart, WARNING_SHARE } from './page/chart.ts'
import { type Html, NOTHING } from './page/html.ts'
import { type IconName, icon } from './page/icon.ts'
import { page, part } from './page/layout.ts'
import { card, facts, type Item, items, primaryLink, segment, tiles } from './page/parts.ts'
import { table } from './page/table.ts'
import { ago, CLASS_NAMES, CLASSES, time } from './page/text.ts'
import { may } from './session/signed-in.ts'
import { creditMeter, creditsLeft, historyTable } from './usage.ts'
import { shortUrl } from './webhooks/actions.ts'

/** The Overview page: what was verified, what runs, and what needs attention. */
export function overviewRoutes({ health, clock }: DashboardDeps): Hono<Env> {
  return (
    new Hono<Env>()
      .get('/overview', c => overviewPage(c, { health, clock }))
      .get('/overview/lists', async c => part(c, listsTable(await findLists(c))))
      // A response without content changes nothing, so screen readers do not announce it again.
      .get('/overview/machine', c =>
        health.machine().state === 'failing' ? c.body(null, 204) : part(c, NOTHING),
      )
      .get('/overview/attention', async c => {
        const usage = may(c.get('user'), 'account:read') ? await findUsage(c, 'month') : null
        return part(c, await attention(c, { health, clock, usage, lists: await findLists(c) }))
      })
  )
}

/** The last is the default. */
const PERIODS = [
  { period: 'week', name: '7 days' },
  { period: 'month', name: '30 days' },
] as const

async function overviewPage(c: Context<Env>, deps: OverviewDeps): Promise<Response> {
  const period = PERIODS.find(one => one.period === c.req.query('period')) ?? PERIODS[1]
  const user = c.get('user')
  const [usage, lists] = await Promise.all([
    may(user, 'account:read') ? findUsage(c, period.period) : null,
    findLists(c),
  ])
  const isNew = usage?.history.length === 0 && lists.length === 0
  return page(c, {
    title: 'Overview',
    scripts: ['chart.js'],
    actions: html`
      ${usage === null || isNew ? NOTHING : periods(period.period)}
      ${may(user, 'verify:bulk') ? primaryLink('/lists/new', 'Verify a list', 'plus') : NOTHING}`,
    body: html`
      ${isNew ? firstSteps() : NOTHING}
      ${usage === null || isNew ? NOTHING : figures(usage, lists, period.name)}
      <div class="grid is-12">
        ${usage === null || isNew ? NOTHING : daysCard(usage)}
        ${card({ title: 'Needs attention', span: 4, body: await attention(c, { ...deps, usage, lists }) })}
        ${isNew ? NOTHING : listsCard(lists)}
        ${usage === null ? NOTHING : creditsCard(usage, isNew ? 8 : 4)}
        ${usage === null || isNew ? NOTHING : activityCard(usage)}
      </div>`,
  })
}

type Usage = {
  readonly stats: Stats['data']
  readonly credits: Credits['data']
  readonly limits: readonly Limit[]
  readonly history: HistoryPage['data']['items']
}

const SHOWN = 5

async function findUsage(c: Context<Env>, period: Stats['data']['period']): Promise<Usage> {
  const api = c.get('api')
  const [stats, credits, limits, history] = await Promise.all([
    api.ask<Stats>('/v1/stats', { query: { period } }),
    api.ask<Credits>('/v1/credits'),
    api.ask<Limits>('/v1/limits'),
    api.ask<HistoryPage>('/v1/history', { query: { limit: SHOWN } }),
  ])
  return {
    stats: stats.data,
    credits: credits.data,
    limits: limits.data.limits,
    history: history.data.items,
  }
}

/** Returns the latest lists; none if the key may not read them. */
async function findLists(c: Context<Env>): Promise<readonly ListedJob[]> {
  if (!may(c.get('user'), 'jobs:read')) return []
  const { data } = await c
    .get('api')
    .ask<JobPage>('/v1/jobs', { query: { ...ALL_JOBS, limit: SHOWN } })
  return data.items
}

const periods = (chosen: string): Html =>
  segment(
    'Period',
    PERIODS.map(({ period, name }) => ({
      href: `/overview?period=${period}`,
      label: name,
      isCurrent: period === chosen,
    })),
  )

/** Leads a new user to the first verification, the first list and the first key. */
const firstSteps = (): Html => html`
  <div class="grid">
    ${firstStep('mail-check', 'Verify an address', 'See each step of the SMTP dialogue, the verdict, and what to do next.', '/verify')}
    ${firstStep('list-checks', 'Verify a list', 'Upload a CSV file or paste rows, then download the list with a result for each row.', '/lists/new')}
    ${firstStep('key-round', 'Create an API key', 'Verify addresses from your program. Use a separate key for each program.', '/keys/new')}
  </div>`

const firstStep = (name: IconName, title: string, text: string, href: string): Html => html`
  <section class="empty">${icon(name)}<h2>${title}</h2><p>${text}</p><a class="button" href="${href}">${title}</a></section>`

function figures({ stats, credits }: Usage, lists: readonly ListedJob[], period: string): Html {
  const { total } = stats
  const active = lists.filter(isActive)
  return tiles([
    {
      label: 'Verified',
      value: formatNumber(total.verifications),
      note: countChange(stats, period),
    },
    {
      label: CLASS_NAMES.deliverable,
      value: formatPercent(total.deliverable, total.verifications),
      note: html`${shareChange(stats)}${pluralize(total.deliverable, 'address')}`,
    },
    {
      label: 'Credits left today',
      value: creditsLeft(credits),
      note:
        credits.credits_added === null
          ? formatPlan(credits.plan)
          : `of ${formatNumber(credits.credits_added)}`,
    },
    {
      label: 'Lists running',
      value: formatNumber(active.length),
      note: pluralize(
        active.reduce((sum, one) => sum + one.total_emails - one.processed_emails, 0),
        'row',
      ).concat(' left'),
    },
  ])
}

/** Compares the verifications with those of the previous period, if it has any. */
function countChange({ total, previous }: Stats['data'], period: string): Html {
  if (previous.verifications === 0) return html`${period}`
  const added = total.verifications - previous.verifications
  const change = formatPercent(Math.abs(added), previous.verifications)
  return html`<b>${signOf(added)}${change}</b> vs. previous ${period}`
}

/** Compares the share of deliverable addresses with that of the previous period, in points. */
function shareChange({ total, previous }: Stats['data']): Html {
  if (previous.verifications === 0 || total.verifications === 0) return NOTHING
  const points =
    (100 * total.deliverable) / total.verifications -
    (100 * previous.deliverable) / previous.verifications
  const rounded = Math.round(10 * points) / 10
  const tone = rounded === 0 ? '' : rounded > 0 ? 'is-up' : 'is-down'
  return html`<b class="${tone}">${signOf(rounded)}${formatNumber(Math.abs(rounded))} pt</b> · `
}

const signOf = (change: number): string => (change > 0 ? '+' : change < 0 ? '−' : '')

const daysCard = ({ stats: { days, total } }: Usage): Html =>
  card({ title: 'Verifications by day', span: 8, body: dayChart(days, total) })

const creditsCard = ({ credits, limits }: Usage, span: 4 | 8): Html =>
  card({
    title: 'Credits and limits',
    span,
    more: html`<a href="/usage">Usage</a>`,
    body: html`
      ${creditMeter(credits)}
      ${facts(limits.filter(({ name }) => name !== 'credits').map(({ text, limit, remaining }) => [text, html`${formatNumber(remaining)} <span class="muted">of ${formatNumber(limit)} left</span>`]))}`,
  })

const listsCard = (lists: readonly ListedJob[]): Html =>
  card({
    title: 'Recent lists',
    span: 8,
    more: html`<a href="/lists">All lists</a>`,
    body: listsTable(lists),
  })

/** Renders the latest lists; polls while one is active. */
function listsTable(lists: readonly ListedJob[]): Html {
  if (lists.length === 0) return html`<div><p class="muted">No lists yet.</p></div>`
  const polling = lists.some(isActive)
    ? html`hx-get="/overview/lists" hx-trigger="every 5s" hx-select="#recent-lists" hx-swap="outerHTML settle:0s"`
    : NOTHING
  return table({
    caption: 'The latest lists',
    rows: lists,
    body: html`id="recent-lists" ${polling}`,
    columns: [
      {
        label: 'Name',
        kind: 'name',
        cell: listLink,
      },
      { label: 'Status', cell: stateBadge },
      { label: 'Result', kind: 'wide', cell: resultBar },
      { label: 'Rows', kind: 'number', cell: ({ total_emails: rows }) => formatNumber(rows) },
      { label: 'Created', cell: ({ created_at: at }) => ago(at) },
    ],
  })
}

/** Renders the classes of a list as a bar; the rest of the bar are rows without a result. */
function resultBar(job: ListedJob): Html {
  const { data, total_emails: total, processed_emails: done } = job
  const segments = CLASSES.map(kind => ({ kind, value: data.classes[kind] }))
  const text = segments
    .filter(({ value }) => value > 0)
    .map(({ kind, value }) => `${CLASS_NAMES[kind]} ${formatNumber(value)}`)
    .join(', ')
  return html`<div class="bars" title="${text}">${bar(segments, Math.max(1, total))}</div>
    ${isActive(job) ? html`<small>${formatProgress(done, total)}</small>` : NOTHING}<span class="unseen">${text}</span>`
}

const activityCard = ({ history }: Usage): Html =>
  card({
    title: 'Recent verifications',
    span: 12,
    more: html`<a href="/usage#history">History</a>`,
    body: historyTable(history),
  })

type OverviewDeps = Pick<DashboardDeps, 'health' | 'clock'>

type Sources = OverviewDeps & {
  readonly usage: Usage | null
  readonly lists: readonly ListedJob[]
}

/** Renders what needs attention; polls until the first checks of this machine have ended. */
async function attention(c: Context<Env>, sources: Sources): Promise<Html> {
  const found = await findItems(c, sources)
  const isChecking = found.some(({ tone }) => tone === 'running')
  const polling = html`hx-get="/overview/attention" hx-trigger="every 2s" hx-swap="outerHTML settle:0s"`
  return html`<div id="attention" ${isChecking ? polling : NOTHING}>${items(found)}</div>`
}

/** Returns what needs attention, or that nothing does. */
async function findItems(
  c: Context<Env>,
  { health, clock, usage, lists }: Sources,
): Promise<readonly Item[]> {
  const { isAdmin } = c.get('user')
  const { failingWebhooks } = await c.get('alerts')()
  const machine = health.machine()
  const found: Item[] = [
    ...machineItems(machine, isAdmin),
    ...(isAdmin ? await adminItems(health, clock.now()) : []),
    ...(!isAdmin && machine.state === 'checking' ? [CHECKING] : []),
    ...failingWebhooks.map(webhookItem),
    ...lists.filter(({ status }) => status === 'failed').map(failedItem),
    ...(usage === null ? [] : usageItems(usage)),
  ]
  const isFine = found.every(({ tone }) => tone === 'ok')
  return isFine ? [{ tone: 'ok', title: 'No problems found' }, ...found] : found
}

const CHECKING: Item = { tone: 'running', title: 'Checking this machine …' }

/** What only admins see: the checks of the machine, and who blocks it. */
async function adminItems(health: HealthSource, now: number): Promise<Item[]> {
  return [
    ...checkItems(health),
    ...egressItems(health.operators(), health.machine()),
    ...blockItems(health.operators(), await health.peerBlocks(), now),
  ]
}

/** Renders the results of the checks of the machine. */
function checkItems(health: HealthSource): Item[] {
  const { checks, at, isRunning, fault } = health.doctorChecks()
  if (fault !== null && !isRunning) {
    const note = `The checks failed: ${sanitizeText(fault)}`
    return [{ tone: 'bad', title: 'This machine was not checked', note, link: HEALTH_LINK }]
  }
  if (at === null || health.machine().state === 'checking') return [CHECKING]
  const failed = checks.filter(({ state }) => state === 'fail').length
  const warned = checks.filter(({ state }) => state === 'warn').length
  const counts = [
    ...(failed === 0 ? [] : [pluralize(failed, 'failure')]),
    ...(warned === 0 ? [] : [pluralize(warned, 'warning')]),
  ]
  return [
    {
      tone: failed > 0 ? 'bad' : warned > 0 ? 'warn' : 'ok',
      title:
        counts.length === 0
          ? 'This machine: all checks passed'
          : `This machine: ${counts.join(', ')}`,
      note: html`Checked ${ago(at)}`,
      link: counts.length === 0 ? { href: '/doctor', label: 'View' } : HEALTH_LINK,
    },
  ]
}

/** Renders the egresses from which no mail server can be reached while others work. */
const egressItems = ({ egresses }: OperatorsStatus, { smtp }: MachineStatus): Item[] =>
  egresses
    .filter(({ closedSince }) => closedSince !== null && smtp === 'ok')
    .map(({ name, closedSince, port }) => ({
      tone: 'bad',
      title: `No mail server can be reached from the egress "${name}"`,
      note: html`On port ${port}, since ${time(closedSince)}. The other egresses take over.`,
      link: HEALTH_LINK,
    }))

/** Renders the providers that block this machine. */
function blockItems(
  { shown }: OperatorsStatus,
  peerBlocks: readonly PeerBlock[],
  now: number,
): Item[] {
  const own = shown.flatMap(({ title, egress, refusal, othersAsk }): Block[] =>
    refusal === null || refusal.until <= now ? [] : [{ title, egress, ...refusal, othersAsk }],
  )
  const blocks = [...own, ...peerBlocks.map(one => ({ ...one, skipped: 0, othersAsk: true }))]
  const rest = blocks.length - BLOCKS_SHOWN
  return [
    ...blocks.slice(0, BLOCKS_SHOWN).map(blockItem),
    ...(rest > 0
      ? [{ tone: 'warn', title: `${pluralize(rest, 'more block')}`, link: HEALTH_LINK } as const]
      : []),
  ]
}

/** A card has room for a few; the Health page lists all. */
const BLOCKS_SHOWN = 5

type Block = Pick<PeerBlock, 'title' | 'egress' | 'since' | 'until'> & {
  /** Addresses that are unknown because of it. */
  readonly skipped: number
  readonly othersAsk: boolean
}

const blockItem = ({ title, egress, since, until, skipped, othersAsk }: Block): Item => ({
  tone: othersAsk ? 'warn' : 'bad',
  title: othersAsk ? `${title} blocks the egress "${egress}"` : `${title} blocks this machine`,
  note: html`Since ${time(since)}${skipped === 0 ? NOTHING : `; ${pluralize(skipped, 'address')} unknown`}. ${othersAsk ? 'Other egresses take over.' : html`Next attempt ${time(until)}.`}`,
  link: HEALTH_LINK,
})

const webhookItem = ({ id, url, active, disabled_reason, failing_since }: Webhook): Item => ({
  tone: 'bad',
  title: active ? 'Webhook failing' : 'Webhook disabled by ev',
  note: html`${shortUrl(url)}: ${active ? html`since ${ago(failing_since)}` : disabled_reason}`,
  link: { href: `/webhooks/${id}`, label: 'View' },
})

const failedItem = (job: ListedJob): Item => ({
  tone: 'bad',
  title: 'List failed',
  note: titleOf(job),
  link: { href: `/lists/${job.job_id}`, label: 'View' },
})

/** When a limit of lists ends. */
const LIST_LIMIT_ENDS: Partial<Record<Limit['name'], string>> = {
  concurrent_jobs: 'Until a list finishes or is cancelled',
  stored_rows: 'Until lists are deleted',
  stored_feedback: 'Until old feedback is deleted',
}

/** Returns the credits and limits of which at least 80 % are used. */
const usageItems = ({ limits }: Usage): Item[] =>
  limits
    .filter(({ limit, remaining }) => limit - remaining >= WARNING_SHARE * limit)
    .map(({ name, text, remaining, resets_at }) => ({
      tone: remaining === 0 ? 'bad' : 'warn',
      title: `${text}: ${remaining === 0 ? 'limit reached' : 'limit almost reached'}`,
      note: resets_at === null ? (LIST_LIMIT_ENDS[name] ?? '') : html`Resets ${ago(resets_at)}`,
      link: { href: '/usage', label: 'View' },
    }))
