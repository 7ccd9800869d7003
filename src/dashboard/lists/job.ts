import { type Context, Hono } from 'hono'
import { html } from 'hono/html'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import type { DownloadLink, Job, ResultPage, ResultRow } from '../../client/types.ts'
import { formatNumber } from '../../platform/format.ts'
import { ApiProblem } from '../api.ts'
import type { DashboardDeps, Env } from '../deps.ts'
import { confirmed, form, nonceField } from '../page/form.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { page, part } from '../page/layout.ts'
import { meanings, notice, reasonCell } from '../page/notice.ts'
import { table } from '../page/table.ts'
import { badge, copyable, time } from '../page/text.ts'
import { may } from '../session/signed-in.ts'
import {
  chartsOf,
  isActive,
  isResumable,
  SANDBOX_BADGE,
  stateBadge,
  stateSentence,
  titleOf,
} from './charts.ts'
import { downloads } from './downloads.ts'
import { filter, pages, rowsLink } from './filter.ts'
import { filterError, isFiltered, queryFor, type RowFilter, readFilter } from './filters.ts'
import { progress } from './progress.ts'
import { changesOf, reverifyCard } from './reverify.ts'

type JobPageDeps = Pick<DashboardDeps, 'clock' | 'random'>

/** Route of a list: its state, results and rows. */
export const jobRoutes = (deps: JobPageDeps) =>
  new Hono<Env>().get('/lists/:id', async c => {
    // htmx replaces only the rows when the page or the filter changes.
    if (c.req.header('HX-Target') === 'rows')
      return part(c, await newRows(c, await findJob(c), readFilter(c)))
    return jobPage(c, deps)
  })

/** Renders the page of a list; `problem` is the error of a failed action, `link` a new link. */
export async function jobPage(
  c: Context<Env>,
  deps: JobPageDeps,
  problem?: ApiProblem,
  link?: DownloadLink['data'],
): Promise<Response> {
  const job = await findJob(c)
  const rowFilter = readFilter(c)
  const body = html`
    ${problem === undefined ? NOTHING : notice('bad', problem.message)}
    ${link === undefined ? NOTHING : notice('ok', html`This link works until ${time(link.expires_at)}. It is not shown again. ${copyable(link.url)}`)}
    <div id="job">
      ${job.sandbox ? notice('info', SIMULATED) : NOTHING}
      <p><small>Created ${time(job.created_at)}. ID
        <code>${job.job_id}</code>.${metadataOf(job)}${webhookOf(job)}</small></p>
      ${isActive(job) ? await progress(c, job) : await chartsOf(c, job)}
      ${await changesOf(c, job)} ${await reverifyCard(c, deps, job)}
    </div>
    <h2>Rows</h2>
    ${announcement} ${await rows(c, job, rowFilter)}`
  const status = (problem?.status ?? 200) as ContentfulStatusCode
  const back = { href: '/lists', label: 'Lists' }
  return page(c, {
    ...{ title: titleOf(job), back, body, scripts: ['live.js'], status },
    badge: html`${stateBadge(job)}${job.sandbox ? SANDBOX_BADGE : NOTHING}`,
    intro: stateSentence(job, deps.clock.now()),
    actions: html`${downloads(c, job)} ${actions(c, deps, job)}`,
  })
}

const SIMULATED =
  'This list is in the sandbox: its results are simulated. No mail server is contacted, and no credits are used.'

function metadataOf({ metadata }: Job): Html {
  const pairs = Object.entries(metadata)
  if (pairs.length === 0) return NOTHING
  return html` Metadata: ${pairs.map(([key, value], at) => html`${at > 0 ? ', ' : ''}<code>${key}</code> ${value}`)}.`
}

const webhookOf = ({ webhook_id: id }: Job): Html =>
  id === undefined
    ? NOTHING
    : html` Its events are also sent to <a href="/webhooks/${id}">${id}</a>.`

const findJob = (c: Context<Env>): Promise<Job> =>
  c.get('api').ask<Job>(`/v1/jobs/${encodeURIComponent(c.req.param('id') ?? '')}`)

function actions(c: Context<Env>, { random }: JobPageDeps, job: Job): Html {
  if (!may(c.get('user'), 'jobs:write')) return NOTHING
  const path = `/lists/${job.job_id}`
  return html`
    ${isActive(job) && job.finish_requested_at === undefined ? finishMenu(c, path) : NOTHING}
    ${isActive(job) ? form(c, `${path}/cancel`, html`<button>Cancel</button>`) : NOTHING}
    ${isResumable(job) ? form(c, `${path}/resume`, html`${nonceField(random)}<button class="primary">Resume</button>`) : NOTHING}
    ${confirmed(c, {
      ...{ action: `${path}/delete`, label: 'Delete', yes: 'Delete list' },
      question:
        'This deletes the list with its addresses and results, including its entries in the history. Credits are not refunded. This cannot be undone.',
    })}`
}

const finishMenu = (c: Context<Env>, path: string): Html => html`
  <details class="confirm">
    <summary class="button">Finish now</summary>
    <div class="menu">
      <p>Rows that wait for a mail server get the result that is known so far. Unknown results are free, and you can
        re-verify them later. Rows in flight end normally.</p>
      ${form(c, `${path}/finish`, html`<button>Finish list</button>`)}
    </div>
  </details>`

/** Renders new rows for a loaded page and announces the change to screen readers. */
async function newRows(c: Context<Env>, job: Job, rowFilter: RowFilter): Promise<Html> {
  return html`${await rows(c, job, rowFilter)}<p id="${ANNOUNCEMENT}" hx-swap-oob="innerHTML">The rows have changed.</p>`
}

const ANNOUNCEMENT = 'rows-said'
const announcement: Html = html`<p id="${ANNOUNCEMENT}" class="unseen" role="status"></p>`

/** Renders the filter and a page of rows with its pagination. */
async function rows(c: Context<Env>, job: Job, rowFilter: RowFilter): Promise<Html> {
  const content = await rowsOrError(c, job.job_id, rowFilter)
  return html`<div id="rows">${filter(job, rowFilter)} ${content}</div>`
}

async function rowsOrError(c: Context<Env>, jobId: string, rowFilter: RowFilter): Promise<Html> {
  const error = filterError(rowFilter)
  if (error !== null) return errorRows(jobId, rowFilter, error)
  try {
    const { items, next } = await findRows(c, jobId, rowFilter)
    return html`
      ${items.length === 0 ? noRows(rowFilter, next) : resultTable(jobId, items)}
      ${pages(jobId, rowFilter, next)}`
  } catch (error) {
    if (!(error instanceof ApiProblem)) throw error
    return errorRows(jobId, rowFilter, error.message)
  }
}

const errorRows = (jobId: string, rowFilter: RowFilter, sentence: string): Html =>
  html`${notice('bad', sentence)}${pages(jobId, rowFilter, null)}`

/** Short enough that the browser paints the whole page at once. */
const PAGE_ROWS = 25
/** One request scans up to 100,000 rows in 0.1 s, so ten cover a list of a million rows. */
const SCANS_MAX = 10

type RowPage = { readonly items: readonly ResultRow[]; readonly next: string | null }

async function findRows(c: Context<Env>, jobId: string, rowFilter: RowFilter): Promise<RowPage> {
  const path = `/v1/jobs/${encodeURIComponent(jobId)}/results`
  const items: ResultRow[] = []
  let from: RowFilter = rowFilter
  for (let scans = 1; ; scans++) {
    const query = { ...queryFor(from), limit: PAGE_ROWS - items.length }
    const { data } = await c.get('api').ask<ResultPage>(path, { query })
    items.push(...data.items)
    const next = data.next_cursor
    if (next === null || items.length >= PAGE_ROWS || scans >= SCANS_MAX) return { items, next }
    from = { ...rowFilter, cursor: next }
  }
}

function noRows(rowFilter: RowFilter, next: string | null): Html {
  if (next !== null) {
    return html`<p>No matching rows found so far. The next page continues the search.</p>`
  }
  if (rowFilter.row !== '' || rowFilter.cursor !== '') {
    return html`<p>No ${isFiltered(rowFilter) ? 'matching rows' : 'rows'} from this row on.</p>`
  }
  return html`<p>No matching rows.</p>`
}

const resultTable = (jobId: string, items: readonly ResultRow[]): Html => html`
  ${table({
    caption: 'Rows',
    columns: [
      { label: 'Row', kind: 'number', cell: one => formatNumber(one.row) },
      { label: 'Address', kind: 'name', cell: addressOf },
      {
        label: 'Class',
        cell: one =>
          one.class === null ? html`<span class="badge">Pending</span>` : badge(one.class),
      },
      { label: 'Reason', cell: one => reasonOf(jobId, one) },
      { label: 'Provider', cell: ({ operator }) => html`<span>${operator ?? '–'}</span>` },
      { label: 'Mail server reply', cell: replyOf },
    ],
    rows: items,
    // `live.js` replaces pending rows.
    row: one => html`id="row-${one.row}"${one.class === null ? html` data-pending` : NOTHING}`,
  })}
  ${meanings(items.map(({ reason }) => reason))}`

const addressOf = ({ email, did_you_mean }: ResultRow): Html =>
  html`${email || html`<small>(empty)</small>`}${did_you_mean === null ? NOTHING : html` <br /><small>Did you mean ${did_you_mean}?</small>`}`

function reasonOf(jobId: string, { reason, erased }: ResultRow): Html {
  if (erased) return html`erased<br /><small>Only the class of the result is kept.</small>`
  if (reason === null) return html`–`
  return rowsLink(jobId, { reason }, reasonCell(reason))
}

function replyOf({ smtp_code, smtp_text, mx_host }: ResultRow): Html {
  const reply = [smtp_code, smtp_text].filter(one => one !== null).join(' ')
  const host = mx_host === null ? NOTHING : html` <small>${mx_host}</small>`
  if (reply.length <= REPLY_CHARACTERS) return html`<span>${reply || '–'}${host}</span>`
  return html`<details class="cut"><summary>${reply}</summary>${host}</details>`
}

/** Longer replies are collapsed to keep rows short. */
const REPLY_CHARACTERS = 48
