import { type Context, Hono } from 'hono'
import { html } from 'hono/html'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import type { Job, ResultPage, ResultRow } from '../../client/types.ts'
import { formatNumber } from '../../platform/format.ts'
import { ApiProblem, proxy, queryOf } from '../api.ts'
import type { DashboardDeps, Env } from '../deps.ts'
import { boxes, confirmed, form, nonceField, select } from '../page/form.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { page, part } from '../page/layout.ts'
import { meanings, notice, reasonCell } from '../page/notice.ts'
import { badge, CLASS_NAMES, CLASSES, time } from '../page/text.ts'
import { whileSignedIn } from '../session/sessions.ts'
import { may } from '../session/signed-in.ts'
import { chartsOf, isActive, stateBadge, stateSentence, titleOf } from './charts.ts'
import { filter, pages } from './filter.ts'
import { filterError, isFiltered, queryFor, type RowFilter, readFilter } from './filters.ts'

type JobPageDeps = Pick<DashboardDeps, 'clock' | 'random'>

/** Route of a list: its state, results and rows. */
export const jobRoutes = (deps: JobPageDeps) =>
  new Hono<Env>().get('/lists/:id', async c => {
    // htmx replaces only the rows when the page or the filter changes.
    if (c.req.header('HX-Target') === 'rows')
      return part(c, await newRows(c, idOf(c), readFilter(c)))
    return jobPage(c, deps)
  })

/** Renders the page of a list; `problem` is the error of a failed action. */
export async function jobPage(
  c: Context<Env>,
  deps: JobPageDeps,
  problem?: ApiProblem,
): Promise<Response> {
  const job = await c.get('api').ask<Job>(`/v1/jobs/${encodeURIComponent(idOf(c))}`)
  const rowFilter = readFilter(c)
  const body = html`
    ${problem === undefined ? NOTHING : notice('bad', problem.message)}
    <div id="job">
      <div class="row is-level">${isActive(job) ? NOTHING : stateBadge(job)} <div class="actions">${actions(c, deps, job)}</div></div>
      <p>${stateSentence(job, deps.clock.now())}</p>
      <p><small>Created ${time(job.created_at)}${job.sandbox ? ' in the sandbox: results are simulated' : ''}. ID
        <code>${job.job_id}</code>.</small></p>
      ${isActive(job) ? progress(job) : await chartsOf(c, job)}
      ${job.processed_emails === 0 ? NOTHING : downloadForm(job)}
    </div>
    <h2>Rows</h2>
    ${filter(job.job_id, rowFilter)} ${announcement} ${await rows(c, job.job_id, rowFilter)}`
  const status = (problem?.status ?? 200) as ContentfulStatusCode
  return page(c, { title: titleOf(job), body, scripts: ['live.js'], status })
}

const idOf = (c: Context<Env>): string => c.req.param('id') ?? ''

function actions(c: Context<Env>, { random }: JobPageDeps, job: Job): Html {
  if (!may(c.get('user'), 'jobs:write')) return NOTHING
  const path = `/lists/${job.job_id}`
  const isResumable = job.status === 'cancelled' || job.status === 'failed'
  return html`
    ${isActive(job) ? form(c, `${path}/cancel`, html`<button>Cancel</button>`) : NOTHING}
    ${isResumable ? form(c, `${path}/resume`, html`${nonceField(random)}<button class="primary">Resume</button>`) : NOTHING}
    ${confirmed(c, {
      ...{ action: `${path}/delete`, label: 'Delete', yes: 'Delete list' },
      question:
        'This deletes the list with its addresses and results, including its entries in the history. Credits are not refunded. This cannot be undone.',
    })}`
}

/** Route that streams the results as a file. */
export const downloadRoutes = () =>
  new Hono<Env>().get('/lists/:id/download', async c => {
    const id = encodeURIComponent(c.req.param('id'))
    const query = queryOf({
      format: c.req.query('format') || 'csv',
      filter: c.req.queries('class')?.join(',') || null,
      // An incomplete list returns the results so far.
      partial: true,
    })
    return proxy(c, await c.get('api').fetch(`/v1/jobs/${id}/download${query}`))
  })

/** Renders the download form; no class selected means all rows. */
const downloadForm = ({ job_id }: Job): Html => html`
  <form method="get" action="/lists/${job_id}/download" class="card" aria-labelledby="download-title">
    <h2 id="download-title">Download</h2>
    <div class="row">
      ${select({
        ...{ label: 'Format', name: 'format' },
        choices: [
          { value: 'csv', label: 'CSV' },
          { value: 'json', label: 'JSON' },
          { value: 'ndjson', label: 'NDJSON, one row per line' },
        ],
      })}
      ${boxes(
        'Classes to include (none selected: all)',
        'class',
        CLASSES.map(kind => ({ value: kind, label: CLASS_NAMES[kind] })),
      )}
      <button>Download</button>
    </div>
    <p><small>CSV contains the columns of your list with the result of each row.</small></p>
  </form>`

/** Route that streams the progress of a list as server-sent events. */
export const progressRoutes = (deps: DashboardDeps) =>
  new Hono<Env>().get('/lists/:id/events', async c => {
    const path = `/v1/jobs/${encodeURIComponent(c.req.param('id'))}/events`
    const response = await c.get('api').fetch(path)
    if (!response.ok || response.body === null) return proxy(c, response)
    return proxy(c, new Response(whileSignedIn(c, deps, response.body), response))
  })

/**
 * Renders the progress of an active list, which `live.js` updates in place without changing its
 * height. When the list ends, htmx replaces this section with the results.
 */
const progress = (job: Job): Html => html`
  <section class="card live" id="live" data-events="/lists/${job.job_id}/events" aria-labelledby="live-title"
    hx-get="/lists/${job.job_id}" hx-trigger="ended" hx-target="#job" hx-select="#job" hx-select-oob="#rows"
    hx-swap="outerHTML settle:0s">
    <h2 id="live-title">Progress</h2>
    <progress max="${job.total_emails}" value="${job.processed_emails}" aria-labelledby="live-title"></progress>
    <dl class="figures">
      <div><dt>Done</dt><dd><span data-live="done">${formatNumber(job.processed_emails)}</span> of ${formatNumber(job.total_emails)} rows</dd></div>
      <div><dt>Rate</dt><dd data-live="rate">–</dd></div>
      <div><dt>Time left</dt><dd data-live="left">${job.estimated_time ?? '–'}</dd></div>
    </dl>
    <dl class="figures">${CLASSES.map(
      kind =>
        html`<div><dt>${badge(kind)}</dt><dd data-live="${kind}">${formatNumber(job.data.classes[kind])}</dd></div>`,
    )}</dl>
    <p class="unseen" data-live="said" role="status"></p>
    <noscript><p>Reload the page to update the progress.</p></noscript>
  </section>`

/** Renders new rows for a loaded page and announces the change to screen readers. */
async function newRows(c: Context<Env>, jobId: string, rowFilter: RowFilter): Promise<Html> {
  return html`${await rows(c, jobId, rowFilter)}<p id="${ANNOUNCEMENT}" hx-swap-oob="innerHTML">The rows have changed.</p>`
}

const ANNOUNCEMENT = 'rows-said'
const announcement: Html = html`<p id="${ANNOUNCEMENT}" class="unseen" role="status"></p>`

/** Renders a page of rows with its pagination. */
async function rows(c: Context<Env>, jobId: string, rowFilter: RowFilter): Promise<Html> {
  const error = filterError(rowFilter)
  if (error !== null) return errorRows(jobId, rowFilter, error)
  try {
    const { items, next } = await findRows(c, jobId, rowFilter)
    return html`
      <div id="rows">
        ${items.length === 0 ? noRows(rowFilter, next) : table(items)}
        ${pages(jobId, rowFilter, next)}
      </div>`
  } catch (error) {
    if (!(error instanceof ApiProblem)) throw error
    return errorRows(jobId, rowFilter, error.message)
  }
}

const errorRows = (jobId: string, rowFilter: RowFilter, sentence: string): Html =>
  html`<div id="rows">${notice('bad', sentence)}${pages(jobId, rowFilter, null)}</div>`

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

const table = (items: readonly ResultRow[]): Html => html`
  <div class="scroll" tabindex="0" role="region" aria-label="Rows"><table class="results">
    <thead><tr>
      <th scope="col" class="number">Row</th><th scope="col">Address</th><th scope="col">Class</th>
      <th scope="col">Reason</th><th scope="col">Mail server reply</th>
    </tr></thead>
    <tbody>${items.map(row)}</tbody>
  </table></div>
  ${meanings(items.map(({ reason }) => reason))}`

const row = (one: ResultRow): Html => html`
  <tr>
    <td class="number">${formatNumber(one.row)}</td>
    <td class="long">${one.email || html`<small>(empty)</small>`}${one.did_you_mean === null ? NOTHING : html`<br /><small>Did you mean ${one.did_you_mean}?</small>`}</td>
    <td>${one.class === null ? html`<span class="badge">Pending</span>` : badge(one.class)}</td>
    <td>${reasonOf(one)}</td>
    <td>${replyOf(one)}</td>
  </tr>`

function reasonOf({ reason, erased }: ResultRow): Html {
  if (erased) return html`erased<br /><small>Only the class of the result is kept.</small>`
  if (reason === null) return html`–`
  return reasonCell(reason)
}

function replyOf({ smtp_code, smtp_text, mx_host }: ResultRow): Html {
  const reply = [smtp_code, smtp_text].filter(one => one !== null).join(' ')
  const host = mx_host === null ? NOTHING : html` <small>${mx_host}</small>`
  if (reply.length <= REPLY_CHARACTERS) return html`${reply || '–'}${host}`
  return html`<details class="cut"><summary>${reply}</summary>${host}</details>`
}

/** Longer replies are collapsed to keep rows short. */
const REPLY_CHARACTERS = 48
