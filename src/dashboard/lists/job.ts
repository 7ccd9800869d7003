import { type Context, Hono } from 'hono'
import { html } from 'hono/html'
import type { DownloadLink, Job } from '../../client/types.ts'
import type { ApiProblem } from '../api.ts'
import type { DashboardDeps, Env } from '../deps.ts'
import { confirmed, form, nonceField } from '../page/form.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { page, part } from '../page/layout.ts'
import { notice } from '../page/notice.ts'
import { copyable, time } from '../page/text.ts'
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
import { FOUND, ROWS } from './filter.ts'
import { pathTo, type RowFilter, readFilter } from './filters.ts'
import { findJob } from './find-job.ts'
import { progress } from './progress.ts'
import { changesOf, LABELS, reverifyCard } from './reverify.ts'
import { PANEL, rowPanel } from './row-panel.ts'
import { found, rows } from './rows.ts'

type JobPageDeps = Pick<DashboardDeps, 'clock' | 'random'>

/** Route of a list: its state, results and rows. */
export const jobRoutes = (deps: JobPageDeps) =>
  new Hono<Env>().get('/lists/:id', async c => {
    // htmx replaces only a part when the page of rows, the filter or the open row changes.
    const target = c.req.header('HX-Target') ?? ''
    const render = PARTS[target]
    if (render === undefined) return jobPage(c, deps)
    const [job, rowFilter] = [await findJob(c), readFilter(c)]
    c.header(isTyping(c, target) ? 'HX-Replace-Url' : 'HX-Push-Url', pathTo(job.job_id, rowFilter))
    return part(c, await render(c, job, rowFilter))
  })

/** A search is one step of the history of the browser, however many keys are typed. */
function isTyping({ req }: Context<Env>, target: string): boolean {
  const before = URL.parse(req.header('HX-Current-URL') ?? '')?.searchParams
  return target === FOUND && before?.has('search') === true
}

type RenderPart = (c: Context<Env>, job: Job, rowFilter: RowFilter) => Promise<Html>

/** The parts of the page that htmx replaces, by their IDs. */
const PARTS: Readonly<Record<string, RenderPart>> = {
  [ROWS]: async (...args) => html`${await rows(...args)}${CHANGED}`,
  [FOUND]: async (...args) => html`${await found(...args)}${CHANGED}`,
  [PANEL]: rowPanel,
}

/** What a page of a list shows beside the list. */
type Outcome = {
  /** The error of a failed action. */
  readonly problem?: ApiProblem
  /** A new link. */
  readonly link?: DownloadLink['data']
  /** The row whose details are open, with the result of its verification. */
  readonly row?: { readonly open: string; readonly check: Html }
}

/** Renders the page of a list. */
export async function jobPage(
  c: Context<Env>,
  deps: JobPageDeps,
  { problem, link, row }: Outcome = {},
): Promise<Response> {
  const job = await findJob(c)
  const rowFilter = row === undefined ? readFilter(c) : { ...readFilter(c), open: row.open }
  const body = html`
    ${link === undefined ? NOTHING : notice('ok', html`This link works until ${time(link.expires_at)}. It is not shown again. ${copyable(link.url)}`)}
    <div id="job">
      ${job.sandbox ? notice('info', SIMULATED) : NOTHING}
      <p><small>Created ${time(job.created_at)}. ID
        <code>${job.job_id}</code>.${metadataOf(job)}${webhookOf(job)}</small></p>
      ${isActive(job) ? await progress(c, job) : await chartsOf(c, job)}
      ${await changesOf(c, job)} ${await reverifyCard(c, deps, job)}
    </div>
    <h2>Rows</h2>
    ${announcement} ${await rows(c, job, rowFilter)}
    ${await rowPanel(c, job, rowFilter, row?.check)}`
  const back = { href: '/lists', label: 'Lists' }
  return page(c, {
    title: titleOf(job),
    back,
    body,
    problem,
    labels: LABELS,
    badge: html`${stateBadge(job)}${job.sandbox ? SANDBOX_BADGE : NOTHING}`,
    scripts: ['live.js', 'rows.js'],
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

function actions(c: Context<Env>, { random }: JobPageDeps, job: Job): Html {
  if (!may(c.get('user'), 'jobs:write')) return NOTHING
  const path = `/lists/${job.job_id}`
  return html`
    ${isActive(job) && job.finish_requested_at === undefined ? finishMenu(c, path) : NOTHING}
    ${isActive(job) ? form(c, `${path}/cancel`, html`<button>Cancel</button>`) : NOTHING}
    ${isResumable(job) ? form(c, `${path}/resume`, html`${nonceField(random)}<button class="primary">Resume</button>`) : NOTHING}
    ${confirmed(c, {
      action: `${path}/delete`,
      label: 'Delete',
      yes: 'Delete list',
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

const ANNOUNCEMENT = 'rows-said'
const announcement: Html = html`<p id="${ANNOUNCEMENT}" class="unseen" role="status"></p>`
/** Announces other rows to screen readers. */
const CHANGED: Html = html`<p id="${ANNOUNCEMENT}" hx-swap-oob="innerHTML">The rows have changed.</p>`
