import { type Context, Hono } from 'hono'
import { html } from 'hono/html'
import type { Breakdown, Job, ListedJob } from '../../client/types.ts'
import { ACTIONS } from '../../engine/verdict/action.ts'
import { formatDuration, formatNumber, pluralize } from '../../platform/format.ts'
import type { Env } from '../deps.ts'
import { bars, donut, measureOf } from '../page/chart.ts'
import { type Html, isHtmx, NOTHING } from '../page/html.ts'
import { page, part } from '../page/layout.ts'
import { meanings, reasonWord } from '../page/notice.ts'
import { card, facts } from '../page/parts.ts'
import { ACTION_NAMES, CLASS_NAMES, CLASSES, statusBadge, type Tone } from '../page/text.ts'
import { rowsLink } from './filter.ts'
import { findJob, jobPath } from './find-job.ts'

/** Route with the charts of a list: a fragment for htmx, or a page. */
export const chartRoutes = () =>
  new Hono<Env>().get('/lists/:id/charts', async c => {
    const id = c.req.param('id')
    if (isHtmx(c)) return part(c, await charts(c, id))
    const job = await findJob(c)
    const back = { href: `/lists/${job.job_id}`, label: 'List' }
    return page(c, { title: titleOf(job), back, body: await charts(c, id) })
  })

/** Up to this size the results are counted while the page is rendered: 30 ms. */
const INLINE_ROWS_MAX = 20_000

/** Renders the charts of a finished list, or for a long one a placeholder that loads them. */
export function chartsOf(c: Context<Env>, job: Job): Html | Promise<Html> {
  if (job.processed_emails === 0) return NOTHING
  if (job.total_emails <= INLINE_ROWS_MAX) return charts(c, job.job_id)
  const path = `/lists/${job.job_id}/charts`
  return html`
    <div class="charts is-coming" hx-get="${path}" hx-trigger="load" hx-swap="outerHTML">
      <p>Counting the results … <a href="${path}">Open the charts as a page</a></p>
    </div>`
}

/** Renders the reasons of a running list. Those of a long one come with the first event. */
export async function liveReasons(c: Context<Env>, job: Job): Promise<Html> {
  const { job_id: id, processed_emails: done, total_emails: total } = job
  const isLong = total > INLINE_ROWS_MAX
  const counting = html`<p class="muted">Counting the results …</p>`
  return card({
    title: 'By reason',
    body: isLong && done > 0 ? reasonsPart(counting) : await countReasons(c, id, done),
  })
}

/** Counts the results by reason. The API limits how often those of a long list are counted. */
export async function countReasons(c: Context<Env>, id: string, done: number): Promise<Html> {
  // A count before the first result would be cached for some seconds.
  return reasonsPart(done === 0 ? NO_RESULTS : await reasonBars(c, id))
}

const reasonsPart = (body: Html): Html => html`<div id="live-reasons">${body}</div>`

const NO_RESULTS = html`<p class="muted">No results yet.</p>`

async function reasonBars(c: Context<Env>, id: string): Promise<Html> {
  const counts = await count(c, id)
  if (counts.done === 0) return NO_RESULTS
  const all = reasons(id, counts)
  const shown = all.slice(0, REASONS_SHOWN)
  return html`
    ${bars('Rows by reason', shown, measureOf(all))}
    ${all.length > shown.length ? html`<p><small>And ${pluralize(all.length - shown.length, 'more reason')}. All are shown when the list is finished.</small></p>` : NOTHING}`
}

/** Reasons of a running list that are shown, the most frequent ones: the card keeps its height. */
const REASONS_SHOWN = 10

async function count(c: Context<Env>, id: string): Promise<Counts> {
  const path = `${jobPath(id)}/breakdown`
  return (await c.get('api').ask<Breakdown>(path)).data
}

async function charts(c: Context<Env>, id: string): Promise<Html> {
  const data = await count(c, id)
  return html`
    <div class="charts grid">
      <div>
        ${classChart(id, data.classes)}
        ${card({ title: 'Expected bounces', id: 'bounces', body: bounces(id, data) })}
        ${card({ title: 'By provider', body: byOperator(data) })}
      </div>
      <div>
        ${card({
          title: 'By reason',
          body: html`${bars('Rows by reason', reasons(id, data))} ${meanings(data.reasons.map(({ reason }) => reason))}`,
        })}
      </div>
    </div>`
}

type Counts = Breakdown['data']

/** Renders the bounces to expect before and after the actions, beside the limits of providers. */
function bounces(id: string, { actions, projection }: Counts): Html {
  const { before, after, reports, complaint_rate: complaints, limits } = projection
  const percent = (share: number) => `${(100 * share).toFixed(1)}%`
  const rates = (one: typeof before) =>
    one.addresses === 0
      ? 'No addresses'
      : `${percent(one.bounce_rate)} (${percent(one.bounce_rate_min)} to ${percent(one.bounce_rate_max)})`
  const basis =
    reports === 0
      ? 'The rates are assumptions: report bounces and deliveries to measure your own.'
      : `The rates are from ${pluralize(reports, 'report')} of your mail, and assumptions.`
  return html`
    ${facts([
      ['Mail to all addresses', rates(before)],
      ['If you follow the actions', rates(after)],
      ...ACTIONS.map(
        action =>
          [rowsLink(id, { action }, ACTION_NAMES[action]), formatNumber(actions[action])] as const,
      ),
      ...(complaints === null
        ? []
        : ([['Reported as spam, 30 days', percent(complaints)]] as const)),
    ])}
    <p><small>${basis} Amazon SES reviews accounts from ${percent(limits.ses_bounce_review)} bounces and may pause them from ${percent(limits.ses_bounce_pause)}; Gmail limits complaints to ${percent(limits.gmail_complaints)}.</small></p>`
}

/** Renders the rows with a result by class, as links that filter the rows. */
export const classChart = (id: string, classes: Counts['classes']): Html =>
  card({
    title: 'By class',
    id: 'by-class',
    body: html`
      ${donut(
        CLASSES.map(kind => ({
          label: CLASS_NAMES[kind],
          kind,
          value: classes[kind],
          link: rowsLink(id, { classes: [kind] }, CLASS_NAMES[kind]),
        })),
      )}
      <p><small>Percentages are rounded and may not add up to 100%.</small></p>`,
  })

/** One bar for each reason, with a segment for each class. */
const reasons = (id: string, { reasons }: Counts) =>
  [...Map.groupBy(reasons, ({ reason }) => reason)].map(([reason, counts]) => ({
    label: rowsLink(id, { reason }, reasonWord(reason)),
    segments: counts.map(({ class: kind, count }) => ({ kind, value: count })),
  }))

/** The other providers are collapsed. */
const OPERATORS_SHOWN = 8

function byOperator({ operators, operators_left: left, done }: Counts): Html {
  const all = operators.map(({ operator, classes }) => ({
    label: operator ?? 'No mail server probed',
    segments: CLASSES.map(kind => ({ kind, value: classes[kind] })),
  }))
  const measure = { ...measureOf(all), total: done }
  const [first, rest] = [all.slice(0, OPERATORS_SHOWN), all.slice(OPERATORS_SHOWN)]
  const others =
    left === 0
      ? NOTHING
      : html`<p><small>${pluralize(left, 'more row')} at other providers.</small></p>`
  if (rest.length === 0) return html`${bars('Rows by provider', first, measure)} ${others}`
  return html`
    ${bars('Rows by provider', first, measure)}
    <details>
      <summary>${pluralize(rest.length, 'more provider')}</summary>
      ${bars('Rows by provider, continued', rest, measure)} ${others}
    </details>`
}

/** A job as the API returns it, alone or in a list. */
type AnyJob = Job | ListedJob
export type State = AnyJob['status']

/** Returns whether a job is queued or processing. */
export const isActive = ({ status }: Pick<AnyJob, 'status'>) =>
  status === 'queued' || status === 'processing'

/** Returns whether a job has stopped before its end. */
export const isResumable = ({ status }: Pick<AnyJob, 'status'>) =>
  status === 'cancelled' || status === 'failed'

/** Returns the name of a list, or its ID if it has none. */
export const titleOf = ({ name, job_id }: AnyJob): string => name ?? job_id

/** Query that lists the jobs of the sandbox beside the live ones, for tables with `listLink()`. */
export const ALL_JOBS = { include_sandbox: true } as const

/** Renders the name of a list as a link to its page, with a badge if its results are simulated. */
export const listLink = (job: ListedJob): Html =>
  html`<a id="${job.job_id}" href="/lists/${job.job_id}">${titleOf(job)}</a>${job.sandbox ? html` ${SANDBOX_BADGE}` : NOTHING}`

export const SANDBOX_BADGE: Html = html`<span class="badge" title="The results are simulated">Sandbox</span>`

/** Renders the state of a job as a badge. */
export const stateBadge = ({ status }: AnyJob): Html =>
  statusBadge(STATE_TONES[status], STATE_NAMES[status])

const STATE_TONES: Readonly<Record<State, Tone>> = {
  queued: 'info',
  processing: 'running',
  completed: 'ok',
  failed: 'bad',
  cancelled: 'warn',
}

/** The names of the states that people read. */
export const STATE_NAMES: Readonly<Record<State, string>> = {
  queued: 'Queued',
  processing: 'Running',
  completed: 'Completed',
  failed: 'Failed',
  cancelled: 'Cancelled',
}

/** Returns how long a job took, or has been running; null if it has not started. */
export function tookMs({ started_at, data }: AnyJob, now: number): number | null {
  if (started_at === null) return null
  const end = data.completed_at === null ? now : Date.parse(data.completed_at)
  return Math.max(0, end - Date.parse(started_at))
}

/**
 * Renders the state of a job as text with the available actions. Live progress is shown elsewhere.
 */
export function stateSentence(job: Job, now: number): Html {
  const { processed_emails: done, total_emails: total } = job
  const rows = pluralize(total, 'row')
  const took = formatDuration(tookMs(job, now) ?? 0)
  switch (job.status) {
    case 'queued':
    case 'processing':
      return html`You can leave this page; processing continues.`
    case 'completed':
      return html`Verified ${rows} in ${took}.`
    case 'cancelled':
      return html`Stopped after ${formatNumber(done)} of ${rows}. The results so far are below, and the credits for the
        remaining rows were returned. Resume continues where it stopped.`
    case 'failed':
      return html`Internal error after ${formatNumber(done)} of ${rows}
        (${job.error?.code ?? 'server_error'}). The results so far are below, and the credits for the remaining rows were
        returned. Resume continues where it stopped. If it fails again, send the list ID ${job.job_id} to the
        administrator: the log has the cause.`
    default:
      return job.status satisfies never
  }
}
