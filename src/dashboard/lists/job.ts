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
import { badge, time } from '../page/text.ts'
import { whileSignedIn } from '../session/sessions.ts'
import { may } from '../session/signed-in.ts'
import { CLASSES, chartsOf, isUnderWay, stateBadge, stateSentence, titleOf } from './charts.ts'
import { filter, pages } from './filter.ts'
import { filterError, isFiltered, queryFor, type RowFilter, readFilter } from './filters.ts'

type Parts = Pick<DashboardDeps, 'clock' | 'random'>

/** One list: how it stands, what came out, and its rows. */
export const jobRoutes = (deps: Parts) =>
  new Hono<Env>().get('/lists/:id', async c => {
    // Another page of rows is asked for, or another choice of them: the rest of the page stays.
    if (c.req.header('HX-Target') === 'rows')
      return part(c, await newRows(c, idOf(c), readFilter(c)))
    return jobPage(c, deps)
  })

/** `refused`: why something could not be done with it. */
export async function jobPage(
  c: Context<Env>,
  deps: Parts,
  refused?: ApiProblem,
): Promise<Response> {
  const job = await c.get('api').ask<Job>(`/v1/jobs/${encodeURIComponent(idOf(c))}`)
  const rowFilter = readFilter(c)
  const body = html`
    ${refused === undefined ? NOTHING : notice('bad', refused.message)}
    <div id="job">
      <div class="row is-level">${isUnderWay(job) ? NOTHING : stateBadge(job)} <div class="actions">${actions(c, deps, job)}</div></div>
      <p>${stateSentence(job, deps.clock.now())}</p>
      <p><small>Sent ${time(job.created_at)}${job.sandbox ? ', in the sandbox: its results are simulated' : ''}. Id
        <code>${job.job_id}</code>.</small></p>
      ${isUnderWay(job) ? progress(job) : await chartsOf(c, job)}
      ${job.processed_emails === 0 ? NOTHING : downloadForm(job)}
    </div>
    <h2>Rows</h2>
    ${filter(job.job_id, rowFilter)} ${rowsText} ${await rows(c, job.job_id, rowFilter)}`
  const status = (refused?.status ?? 200) as ContentfulStatusCode
  return page(c, { title: titleOf(job), body, scripts: ['live.js'], status })
}

const idOf = (c: Context<Env>): string => c.req.param('id') ?? ''

function actions(c: Context<Env>, { random }: Parts, job: Job): Html {
  if (!may(c.get('user'), 'jobs:write')) return NOTHING
  const path = `/lists/${job.job_id}`
  const isResumable = job.status === 'cancelled' || job.status === 'failed'
  return html`
    ${isUnderWay(job) ? form(c, `${path}/cancel`, html`<button>Cancel</button>`) : NOTHING}
    ${isResumable ? form(c, `${path}/resume`, html`${nonceField(random)}<button class="primary">Resume</button>`) : NOTHING}
    ${confirmed(c, {
      ...{ action: `${path}/delete`, label: 'Delete', yes: 'Delete it' },
      question:
        'The list goes with its addresses and results, from the history too. What was charged stays charged. This cannot be undone.',
    })}`
}

/** Results as a file, passed on as it is made. */
export const downloadRoutes = () =>
  new Hono<Env>().get('/lists/:id/download', async c => {
    const id = encodeURIComponent(c.req.param('id'))
    const query = queryOf({
      format: c.req.query('format') || 'csv',
      filter: c.req.queries('class')?.join(',') || null,
      // A list that ended early, or is under way, gives what it has.
      partial: true,
    })
    return proxy(c, await c.get('api').fetch(`/v1/jobs/${id}/download${query}`))
  })

/** Without a tick a file has all rows. */
const downloadForm = ({ job_id }: Job): Html => html`
  <form method="get" action="/lists/${job_id}/download" class="card" aria-labelledby="download-title">
    <h2 id="download-title">Download</h2>
    <div class="row">
      ${select({
        ...{ label: 'Format', name: 'format' },
        choices: [
          { value: 'csv', label: 'CSV' },
          { value: 'json', label: 'JSON' },
          { value: 'ndjson', label: 'NDJSON, one row a line' },
        ],
      })}
      ${boxes(
        'Only these classes; without a tick all',
        'class',
        CLASSES.map(kind => ({ value: kind, label: kind })),
      )}
      <button>Download</button>
    </div>
    <p><small>CSV has the columns of your list, and what was found out beside each row.</small></p>
  </form>`

/** How a list stands, told as it happens. */
export const progressRoutes = (deps: DashboardDeps) =>
  new Hono<Env>().get('/lists/:id/events', async c => {
    const path = `/v1/jobs/${encodeURIComponent(c.req.param('id'))}/events`
    const answer = await c.get('api').fetch(path)
    if (!answer.ok || answer.body === null) return proxy(c, answer)
    return proxy(c, new Response(whileSignedIn(c, deps, answer.body), answer))
  })

/**
 * A list that is under way: how it stood when the page was made; a script goes on from there. Heights stay as they are.
 * At its end the script has htmx put what came out in its place.
 */
const progress = (job: Job): Html => html`
  <section class="card live" id="live" data-events="/lists/${job.job_id}/events" aria-labelledby="live-title"
    hx-get="/lists/${job.job_id}" hx-trigger="ended" hx-target="#job" hx-select="#job" hx-select-oob="#rows"
    hx-swap="outerHTML settle:0s">
    <h2 id="live-title">Progress</h2>
    <progress max="${job.total_emails}" value="${job.processed_emails}" aria-labelledby="live-title"></progress>
    <dl class="figures">
      <div><dt>Done</dt><dd><span data-live="done">${formatNumber(job.processed_emails)}</span> of ${formatNumber(job.total_emails)} rows</dd></div>
      <div><dt>Pace</dt><dd data-live="rate">–</dd></div>
      <div><dt>Left</dt><dd data-live="left">${job.estimated_time ?? '–'}</dd></div>
    </dl>
    <dl class="figures">${CLASSES.map(
      kind =>
        html`<div><dt>${badge(kind)}</dt><dd data-live="${kind}">${formatNumber(job.data.classes[kind])}</dd></div>`,
    )}</dl>
    <p class="unseen" data-live="said" role="status"></p>
    <noscript><p>Load the page again to see how it goes on.</p></noscript>
  </section>`

/** The same for a page that is there already: who does not look is told of it too. */
async function newRows(c: Context<Env>, jobId: string, rowFilter: RowFilter): Promise<Html> {
  return html`${await rows(c, jobId, rowFilter)}<p id="${SAID}" hx-swap-oob="innerHTML">Other rows are shown.</p>`
}

/** Where that is told. */
const SAID = 'rows-said'
const rowsText: Html = html`<p id="${SAID}" class="unseen" role="status"></p>`

/** A page of rows, with the way to the next one. */
async function rows(c: Context<Env>, jobId: string, rowFilter: RowFilter): Promise<Html> {
  const fault = filterError(rowFilter)
  if (fault !== null) return refused(jobId, rowFilter, fault)
  try {
    const { items, next } = await look(c, jobId, rowFilter)
    return html`
      <div id="rows">
        ${items.length === 0 ? nothing(rowFilter, next) : table(items)}
        ${pages(jobId, rowFilter, next)}
      </div>`
  } catch (error) {
    if (!(error instanceof ApiProblem)) throw error
    return refused(jobId, rowFilter, error.message)
  }
}

const refused = (jobId: string, rowFilter: RowFilter, sentence: string): Html =>
  html`<div id="rows">${notice('bad', sentence)}${pages(jobId, rowFilter, null)}</div>`

/** More would be seen later: what is painted first is all of a page. */
const PAGE_ROWS = 25
/** Each looks at 100,000 rows in a tenth of a second, at most: a list of a million is looked through whole. */
const LOOKS_MAX = 10

type Found = { readonly items: readonly ResultRow[]; readonly next: string | null }

async function look(c: Context<Env>, jobId: string, rowFilter: RowFilter): Promise<Found> {
  const path = `/v1/jobs/${encodeURIComponent(jobId)}/results`
  const items: ResultRow[] = []
  let from: RowFilter = rowFilter
  for (let filters = 1; ; filters++) {
    const query = { ...queryFor(from), limit: PAGE_ROWS - items.length }
    const { data } = await c.get('api').ask<ResultPage>(path, { query })
    items.push(...data.items)
    const next = data.next_cursor
    if (next === null || items.length >= PAGE_ROWS || filters >= LOOKS_MAX) return { items, next }
    from = { ...rowFilter, cursor: next }
  }
}

function nothing(rowFilter: RowFilter, next: string | null): Html {
  if (next !== null) {
    return html`<p>No such row was found so far, and the list goes on: the next page looks on.</p>`
  }
  if (rowFilter.row !== '' || rowFilter.cursor !== '') {
    return html`<p>There are no ${isFiltered(rowFilter) ? 'such rows' : 'rows'} from there on.</p>`
  }
  return html`<p>No row of this list is like that.</p>`
}

const table = (items: readonly ResultRow[]): Html => html`
  <div class="scroll" tabindex="0" role="region" aria-label="Rows"><table class="results">
    <thead><tr>
      <th scope="col" class="number">Row</th><th scope="col">Address</th><th scope="col">Class</th>
      <th scope="col">Reason</th><th scope="col">What the mail server said</th>
    </tr></thead>
    <tbody>${items.map(row)}</tbody>
  </table></div>
  ${meanings(items.map(({ reason }) => reason))}`

const row = (one: ResultRow): Html => html`
  <tr>
    <td class="number">${formatNumber(one.row)}</td>
    <td class="long">${one.email || html`<small>(empty)</small>`}${one.did_you_mean === null ? NOTHING : html`<br /><small>Did you mean ${one.did_you_mean}?</small>`}</td>
    <td>${one.class === null ? html`<span class="badge">not yet</span>` : badge(one.class)}</td>
    <td>${reasonOf(one)}</td>
    <td>${replyOf(one)}</td>
  </tr>`

function reasonOf({ reason, erased }: ResultRow): Html {
  if (erased) return html`erased<br /><small>Of its result only the class is left.</small>`
  if (reason === null) return html`–`
  return reasonCell(reason)
}

function replyOf({ smtp_code, smtp_text, mx_host }: ResultRow): Html {
  const said = [smtp_code, smtp_text].filter(one => one !== null).join(' ')
  const host = mx_host === null ? NOTHING : html` <small>${mx_host}</small>`
  if (said.length <= LINE_CHARACTERS) return html`${said || '–'}${host}`
  return html`<details class="cut"><summary>${said}</summary>${host}</details>`
}

/** What is longer would make its row tall: it is cut, and opened by who wants it. */
const LINE_CHARACTERS = 48
