import { type Context, Hono } from 'hono'
import { html } from 'hono/html'
import type { DownloadLink, Job, JobPage, ListedJob } from '../../client/types.ts'
import { formatDuration, formatNumber, formatProgress } from '../../platform/format.ts'
import { queryOf } from '../api.ts'
import type { AskOptions, DashboardDeps, Env } from '../deps.ts'
import { bar } from '../page/chart.ts'
import { problemWith, readNonce, sentForm } from '../page/form.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { page } from '../page/layout.ts'
import { empty } from '../page/notice.ts'
import { card, chips, pageLinks, primaryLink } from '../page/parts.ts'
import { table } from '../page/table.ts'
import { ago, CLASS_NAMES, CLASSES, codeBlock } from '../page/text.ts'
import { redirectWithNote } from '../session/cookie.ts'
import { may } from '../session/signed-in.ts'
import {
  ALL_JOBS,
  chartRoutes,
  isActive,
  listLink,
  STATE_NAMES,
  type State,
  stateBadge,
  tookMs,
} from './charts.ts'
import { downloadRoutes } from './downloads.ts'
import { jobPath, listPath } from './find-job.ts'
import { jobPage, jobRoutes } from './job.ts'
import { progressRoutes } from './progress.ts'
import { reverifyRoutes } from './reverify.ts'
import { rowVerifyRoutes } from './row-panel.ts'
import { intakeRoutes } from './upload.ts'

/** Routes of lists: preview, upload, progress, results and actions. */
export function listRoutes(deps: DashboardDeps): Hono<Env> {
  const router = new Hono<Env>()
  router.route('/', overviewRoutes(deps))
  router.route('/', intakeRoutes(deps))
  router.route('/', progressRoutes(deps))
  router.route('/', chartRoutes())
  router.route('/', downloadRoutes())
  router.route('/', actionRoutes(deps))
  router.route(
    '/',
    reverifyRoutes((c, problem) => jobPage(c, deps, { problem })),
  )
  router.route(
    '/',
    rowVerifyRoutes((c, open, check) => jobPage(c, deps, { row: { open, check } })),
  )
  router.route('/', jobRoutes(deps))
  return router
}

/** Route of the lists of the account, newest first. */
const overviewRoutes = ({ clock, settings }: DashboardDeps) =>
  new Hono<Env>().get('/lists', async c => {
    const listFilter = readListFilter(c)
    const { data } = await c.get('api').ask<JobPage>('/v1/jobs', {
      query: {
        ...ALL_JOBS,
        status: listFilter.status,
        cursor: listFilter.cursor,
        limit: PAGE_ROWS,
      },
      sandbox: listFilter.sandbox,
    })
    const body = html`
      ${filter(listFilter)}
      ${data.items.length === 0 ? noLists(c, listFilter, settings.baseUrl) : listTable(data, listFilter, clock.now())}`
    return page(c, { title: 'Lists', body, actions: newList(c) })
  })

const PAGE_ROWS = 25

type ListFilter = {
  readonly status: State | undefined
  readonly sandbox: boolean
  readonly cursor: string | undefined
}

const STATES: readonly State[] = ['queued', 'processing', 'completed', 'failed', 'cancelled']

const readListFilter = ({ req }: Context<Env>): ListFilter => ({
  status: STATES.find(state => state === req.query('status')),
  sandbox: req.query('sandbox') === 'on',
  cursor: req.query('cursor') || undefined,
})

const newList = (c: Context<Env>): Html =>
  may(c.get('user'), 'verify:bulk') ? primaryLink('/lists/new', 'New list', 'plus') : NOTHING

function filter({ status, sandbox }: ListFilter): Html {
  const href = (change: Partial<ListFilter>) =>
    `/lists${queryOf(queryFor({ status, sandbox, cursor: undefined, ...change }))}`
  return html`
    <div class="row filters">${chips('Status of the lists', [
      { label: 'All', href: href({ status: undefined }), isCurrent: status === undefined },
      ...STATES.map(one => ({
        label: STATE_NAMES[one],
        href: href({ status: one }),
        isCurrent: one === status,
      })),
    ])}
    ${chips('Sandbox', [{ label: 'Sandbox', href: href({ sandbox: !sandbox }), isCurrent: sandbox }])}</div>`
}

function noLists(c: Context<Env>, { status, sandbox, cursor }: ListFilter, baseUrl: string): Html {
  if (status !== undefined || cursor !== undefined) {
    return empty({
      title: 'No matching lists',
      text: 'No list has this status.',
      action: html`<a class="button" href="/lists${sandbox ? '?sandbox=on' : ''}">All lists</a>`,
    })
  }
  return html`
    ${empty({
      title: sandbox ? 'No lists in the sandbox yet' : 'No lists yet',
      text: 'Upload a CSV file or paste rows. ev verifies each address, shows the progress, and adds the result to each row for download.',
      action: newList(c),
    })}
    ${card({
      title: 'Upload a list with the API',
      body: codeBlock(
        `curl ${baseUrl}/v1/verify/file -H "Authorization: Bearer $EV_KEY" -F file=@list.csv`,
      ),
    })}`
}

/** Renders the lists; polls every five seconds while one is active, without changing its height. */
function listTable(
  { items, next_cursor }: JobPage['data'],
  listFilter: ListFilter,
  now: number,
): Html {
  const url = `/lists${queryOf(queryFor(listFilter))}`
  const polling = items.some(isActive)
    ? html`hx-get="${url}" hx-trigger="every 5s" hx-select="#lists" hx-swap="outerHTML settle:0s"`
    : NOTHING
  return html`
    ${table({
      caption: 'Lists',
      rows: items,
      body: html`id="lists" ${polling}`,
      columns: [
        {
          label: 'Name',
          kind: 'name',
          cell: listLink,
        },
        { label: 'Status', cell: stateBadge },
        { label: 'Rows', kind: 'number', cell: job => formatNumber(job.total_emails) },
        {
          label: 'Classes',
          kind: 'wide',
          cell: job => (isActive(job) ? progress(job) : classes(job)),
        },
        { label: 'Created', cell: job => ago(job.created_at) },
        { label: 'Duration', kind: 'number', cell: job => durationOf(job, now) },
      ],
    })}
    ${pageLinks({
      cursor: listFilter.cursor,
      next: next_cursor,
      urlAt: cursor => `/lists${queryOf({ ...queryFor(listFilter), cursor })}`,
    })}`
}

function durationOf(job: ListedJob, now: number): string {
  const took = tookMs(job, now)
  return took === null ? '–' : formatDuration(took)
}

const queryFor = ({ status, sandbox, cursor }: ListFilter) => ({
  status,
  cursor,
  sandbox: sandbox ? 'on' : undefined,
})

const progress = ({
  processed_emails: done,
  total_emails: total,
  estimated_time: left,
  data,
}: ListedJob) => html`
  <div class="bars is-alone">${bar(segmentsOf(data), total)}</div>
  <small>${formatProgress(done, total)} · ${formatNumber(done)} done${left === null ? NOTHING : ` · about ${left} left`}</small>`

const segmentsOf = ({ classes }: ListedJob['data']) =>
  CLASSES.map(kind => ({ kind, value: classes[kind] }))

function classes({ data, total_emails: total }: ListedJob): Html {
  const segments = segmentsOf(data)
  const shown = segments.filter(({ value }) => value > 0)
  return html`<div class="bars is-alone">${bar(segments, total)}</div>
    <small>${shown.map(({ kind, value }) => `${formatNumber(value)} ${CLASS_NAMES[kind].toLowerCase()}`).join(', ') || 'None'}</small>`
}

/** Routes that cancel, finish, resume, share and delete a list. */
function actionRoutes(deps: Pick<DashboardDeps, 'clock' | 'random'>): Hono<Env> {
  /** Calls the API; if the state of the list has changed in the meantime, its page shows the error. */
  async function change(
    c: Context<Env>,
    o: {
      readonly path: string
      readonly options: AskOptions
      readonly note: string
      readonly next: string
    },
  ): Promise<Response> {
    try {
      await c.get('api').ask<Job | undefined>(`${jobPath(c.req.param('id'))}${o.path}`, o.options)
    } catch (error) {
      return jobPage(c, deps, { problem: problemWith(error) })
    }
    return redirectWithNote(c, o.next, o.note)
  }

  return new Hono<Env>()
    .post('/lists/:id/cancel', c =>
      change(c, {
        path: '/cancel',
        options: { method: 'POST' },
        next: listPath(c),
        note: 'List cancelled.',
      }),
    )
    .post('/lists/:id/finish', c =>
      change(c, {
        path: '/finish',
        options: { method: 'POST' },
        next: listPath(c),
        note: 'Finishing the list. Rows in flight end normally.',
      }),
    )
    .post('/lists/:id/resume', async c =>
      change(c, {
        path: '/resume',
        next: listPath(c),
        options: { method: 'POST', once: readNonce(await sentForm(c)) },
        note: 'List resumed.',
      }),
    )
    .post('/lists/:id/link', async c => {
      const { text } = await sentForm(c)
      const body = {
        format: text('link_format'),
        ...(text('deliverable') === 'on' ? { filter: ['deliverable'] } : {}),
      }
      try {
        const path = `${jobPath(c.req.param('id'))}/download_url`
        const { data } = await c.get('api').ask<DownloadLink>(path, { body })
        return jobPage(c, deps, { link: data })
      } catch (error) {
        return jobPage(c, deps, { problem: problemWith(error) })
      }
    })
    .post('/lists/:id/delete', c =>
      change(c, {
        path: '',
        options: { method: 'DELETE' },
        next: '/lists',
        note: 'List deleted with its addresses and results.',
      }),
    )
}
