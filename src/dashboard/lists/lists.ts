import { type Context, Hono } from 'hono'
import { html } from 'hono/html'
import type { Job, JobPage, ListedJob } from '../../client/types.ts'
import { formatDuration, formatNumber, formatPercent } from '../../platform/format.ts'
import { queryOf } from '../api.ts'
import type { AskOptions, DashboardDeps, Env } from '../deps.ts'
import { bar } from '../page/chart.ts'
import { problemWith, readNonce, select, sentForm } from '../page/form.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { page } from '../page/layout.ts'
import { empty } from '../page/notice.ts'
import { time } from '../page/text.ts'
import { leaveNote } from '../session/cookie.ts'
import { may } from '../session/signed-in.ts'
import {
  CLASSES,
  chartRoutes,
  isUnderWay,
  type State,
  stateBadge,
  titleOf,
  tookMs,
} from './charts.ts'
import { downloadRoutes, jobPage, jobRoutes, progressRoutes } from './job.ts'
import { intakeRoutes } from './upload.ts'

/** Lists: looking at one before it starts, sending it, watching it, and what came out. */
export function listRoutes(deps: DashboardDeps): Hono<Env> {
  const router = new Hono<Env>()
  router.route('/', overviewRoutes(deps))
  router.route('/', intakeRoutes(deps))
  router.route('/', progressRoutes(deps))
  router.route('/', chartRoutes())
  router.route('/', downloadRoutes())
  router.route('/', actionRoutes(deps))
  router.route('/', jobRoutes(deps))
  return router
}

/** The lists of the account, the newest first. */
const overviewRoutes = ({ clock, settings }: DashboardDeps) =>
  new Hono<Env>().get('/lists', async c => {
    const asked = askedOf(c)
    const { data } = await c.get('api').ask<JobPage>('/v1/jobs', {
      query: { status: asked.status, cursor: asked.cursor, limit: PAGE_ROWS },
      sandbox: asked.sandbox,
    })
    const body = html`
      ${filter(asked)}
      ${data.items.length === 0 ? nothing(c, asked, settings.baseUrl) : table(data, asked, clock.now())}`
    return page(c, { title: 'Lists', body, actions: newList(c) })
  })

const PAGE_ROWS = 25

type Asked = {
  readonly status: State | undefined
  readonly sandbox: boolean
  readonly cursor: string | undefined
}

const STATES: readonly State[] = ['queued', 'processing', 'completed', 'failed', 'cancelled']

const askedOf = ({ req }: Context<Env>): Asked => ({
  status: STATES.find(state => state === req.query('status')),
  sandbox: req.query('sandbox') === 'on',
  cursor: req.query('cursor') || undefined,
})

const newList = (c: Context<Env>): Html =>
  may(c.get('user'), 'verify:bulk')
    ? html`<a class="button primary" href="/lists/new">New list</a>`
    : NOTHING

const filter = ({ status, sandbox }: Asked): Html => html`
  <form method="get" action="/lists" class="row filter">
    ${select({
      ...{ label: 'State', name: 'status' },
      choices: [
        { value: '', label: 'any' },
        ...STATES.map(value => ({ value, label: value, checked: value === status })),
      ],
    })}
    <label class="tick"><input type="checkbox" name="sandbox" ${sandbox ? html`checked` : NOTHING} /> Those of the sandbox</label>
    <button>Show</button>
  </form>`

function nothing(c: Context<Env>, { status, sandbox, cursor }: Asked, baseUrl: string): Html {
  if (status !== undefined || cursor !== undefined) {
    return empty({
      title: 'No such lists',
      text: 'None of your lists is in this state.',
      action: html`<a class="button" href="/lists${sandbox ? '?sandbox=on' : ''}">All lists</a>`,
    })
  }
  return empty({
    title: sandbox ? 'No lists in the sandbox yet' : 'No lists yet',
    text: html`A list is a CSV file, or rows that you paste. Its addresses are verified one by one, you watch how far it is,
      and download it with what was found out beside each row. Programs send one so:
      <code>curl -H "Authorization: Bearer $EV_KEY" -F file=@list.csv ${baseUrl}/v1/verify/file</code>`,
    action: newList(c),
  })
}

/** While something is under way the rows are asked for again; their place and their height stay. */
function table({ items, next_cursor }: JobPage['data'], asked: Asked, now: number): Html {
  const own = `/lists${queryOf(queryFor(asked))}`
  const refreshed = items.some(isUnderWay)
    ? html`hx-get="${own}" hx-trigger="every 5s" hx-select="#lists" hx-swap="outerHTML settle:0s"`
    : NOTHING
  return html`
    <div class="scroll"><table class="lists">
      <thead><tr>
        <th scope="col">Name</th><th scope="col">State</th><th scope="col" class="number">Rows</th>
        <th scope="col">Classes</th><th scope="col">Created</th><th scope="col" class="number">Took</th>
      </tr></thead>
      <tbody id="lists" ${refreshed}>${items.map(job => row(job, now))}</tbody>
    </table></div>
    <nav class="row pages" aria-label="Pages of lists">
      ${asked.cursor === undefined ? NOTHING : html`<a class="button" href="/lists${queryOf(queryFor({ ...asked, cursor: undefined }))}">Newest</a>`}
      ${next_cursor === null ? NOTHING : html`<a class="button" href="/lists${queryOf(queryFor({ ...asked, cursor: next_cursor }))}">Older</a>`}
    </nav>`
}

const queryFor = ({ status, sandbox, cursor }: Asked) => ({
  ...{ status, cursor },
  sandbox: sandbox ? 'on' : undefined,
})

function row(job: ListedJob, now: number): Html {
  const took = tookMs(job, now)
  return html`
    <tr>
      <th scope="row"><a id="${job.job_id}" href="/lists/${job.job_id}">${titleOf(job)}</a></th>
      <td>${stateBadge(job)}</td>
      <td class="number">${formatNumber(job.total_emails)}</td>
      <td>${isUnderWay(job) ? progress(job) : classes(job)}</td>
      <td>${time(job.created_at)}</td>
      <td class="number">${took === null ? '–' : formatDuration(took)}</td>
    </tr>`
}

const progress = ({ processed_emails: done, total_emails: total }: ListedJob) => html`
  <progress max="${total}" value="${done}" aria-label="Rows done"></progress>
  <small>${formatNumber(done)} done, ${formatPercent(done, total)}</small>`

function classes({ data, total_emails: total }: ListedJob): Html {
  const deps = CLASSES.map(kind => ({ kind, value: data.classes[kind] }))
  const told = deps.filter(({ value }) => value > 0)
  return html`<div class="bars is-alone">${bar(deps, total)}</div>
    <small>${told.map(({ kind, value }) => `${formatNumber(value)} ${kind}`).join(', ') || 'none'}</small>`
}

/** What can be done with a list: ending it before its end, going on with it, removing it. */
function actionRoutes(deps: Pick<DashboardDeps, 'clock' | 'random'>): Hono<Env> {
  /** Asks for a change; where the list has gone on meanwhile its page says so. */
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
      await c.get('api').ask<Job | undefined>(`${apiPathOf(c)}${o.path}`, o.options)
    } catch (error) {
      return jobPage(c, deps, problemWith(error))
    }
    leaveNote(c, o.note)
    return c.redirect(o.next, 303)
  }

  return new Hono<Env>()
    .post('/lists/:id/cancel', c =>
      change(c, {
        ...{ path: '/cancel', options: { method: 'POST' }, next: pathOf(c) },
        note: 'The list is cancelled.',
      }),
    )
    .post('/lists/:id/resume', async c =>
      change(c, {
        ...{ path: '/resume', next: pathOf(c) },
        options: { method: 'POST', once: readNonce(await sentForm(c)) },
        note: 'The list goes on.',
      }),
    )
    .post('/lists/:id/delete', c =>
      change(c, {
        ...{ path: '', options: { method: 'DELETE' }, next: '/lists' },
        note: 'The list is deleted, with its addresses and results.',
      }),
    )
}

const idOf = (c: Context<Env>) => encodeURIComponent(c.req.param('id') ?? '')
const pathOf = (c: Context<Env>) => `/lists/${idOf(c)}`
const apiPathOf = (c: Context<Env>) => `/v1/jobs/${idOf(c)}`
