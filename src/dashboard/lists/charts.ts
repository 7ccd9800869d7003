import { type Context, Hono } from 'hono'
import { html } from 'hono/html'
import type { Breakdown, Job, ListedJob } from '../../client/types.ts'
import type { Class } from '../../engine/verdict/verdict.ts'
import { formatDuration, formatNumber, pluralize } from '../../platform/format.ts'
import type { Env } from '../deps.ts'
import { bars, donut, measureOf } from '../page/chart.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { page, part } from '../page/layout.ts'
import { meanings, reasonWord } from '../page/notice.ts'

/** The results of a list in charts; of a long one they come after its page. */
export const chartRoutes = () =>
  new Hono<Env>().get('/lists/:id/charts', async c => {
    const id = c.req.param('id')
    if (c.req.header('HX-Request') === 'true') return part(c, await charts(c, id))
    const job = await c.get('api').ask<Job>(`/v1/jobs/${encodeURIComponent(id)}`)
    const body = html`<p><a href="/lists/${job.job_id}">Back to the list</a></p>${await charts(c, id)}`
    return page(c, { title: titleOf(job), body })
  })

/** Counted within a blink: these need not come later. */
const AT_ONCE_ROWS = 20_000

/** The charts, or of a long list where they will be. */
export function chartsOf(c: Context<Env>, job: Job): Html | Promise<Html> {
  if (job.processed_emails === 0) return NOTHING
  if (job.total_emails <= AT_ONCE_ROWS) return charts(c, job.job_id)
  const path = `/lists/${job.job_id}/charts`
  return html`
    <div class="charts is-coming" hx-get="${path}" hx-trigger="load" hx-swap="outerHTML">
      <p>The results are being counted. <a href="${path}">Show them as a page</a></p>
    </div>`
}

async function charts(c: Context<Env>, id: string): Promise<Html> {
  const path = `/v1/jobs/${encodeURIComponent(id)}/breakdown`
  const { data } = await c.get('api').ask<Breakdown>(path)
  return html`
    <div class="charts grid">
      <div>
        <section class="card"><h2>By class</h2>${donut('Rows by class', slices(data))}</section>
        <section class="card"><h2>By who runs the mail</h2>${byOperator(data)}</section>
      </div>
      <div>
        <section class="card">
          <h2>By reason</h2>
          ${bars('Rows by reason', reasons(data))} ${meanings(data.reasons.map(({ reason }) => reason))}
        </section>
      </div>
    </div>`
}

type Counts = Breakdown['data']

const slices = ({ classes }: Counts) =>
  CLASSES.map(kind => ({ label: kind, kind, value: classes[kind] }))

const reasons = ({ reasons }: Counts) =>
  reasons.map(({ reason, class: kind, count }) => ({
    label: reasonWord(reason),
    segments: [{ kind, value: count }],
  }))

/** The others are as many small ones: whoever wants them opens them. */
const OPERATORS_AT_ONCE = 8

function byOperator({ operators, operators_left: left, done }: Counts): Html {
  const all = operators.map(({ operator, classes }) => ({
    label: operator ?? 'no mail server was asked',
    segments: CLASSES.map(kind => ({ kind, value: classes[kind] })),
  }))
  const measure = { ...measureOf(all), total: done }
  const [first, rest] = [all.slice(0, OPERATORS_AT_ONCE), all.slice(OPERATORS_AT_ONCE)]
  const others =
    left === 0 ? NOTHING : html`<p><small>${pluralize(left, 'more row')} at others.</small></p>`
  if (rest.length === 0) return html`${bars('Rows by operator', first, measure)} ${others}`
  return html`
    ${bars('Rows by operator', first, measure)}
    <details>
      <summary>${pluralize(rest.length, 'more operator')}</summary>
      ${bars('Rows by operator, further down', rest, measure)} ${others}
    </details>`
}

/** A job as a page of ours is given it, alone or among others. */
type AnyJob = Job | ListedJob
export type State = AnyJob['status']

export const CLASSES: readonly Class[] = ['deliverable', 'risky', 'undeliverable', 'unknown']

export const isUnderWay = ({ status }: Pick<AnyJob, 'status'>) =>
  status === 'queued' || status === 'processing'

/** What a list is called; one that was given no name is called by its id. */
export const titleOf = ({ name, job_id }: AnyJob): string => name ?? job_id

/** How a job stands, as a word in its colour. */
export const stateBadge = ({ status }: AnyJob): Html =>
  html`<span class="badge${TONES[status]}">${WORDS[status]}</span>`

const WORDS: Readonly<Record<State, string>> = {
  ...{ queued: 'waiting', processing: 'under way', completed: 'completed' },
  ...{ failed: 'failed', cancelled: 'cancelled' },
}

const TONES: Readonly<Record<State, string>> = {
  ...{ queued: '', processing: '', completed: ' is-ok', failed: ' is-bad', cancelled: ' is-warn' },
}

/** How long a job took, or has taken so far; null: it has not begun. */
export function tookMs({ started_at, data }: AnyJob, now: number): number | null {
  if (started_at === null) return null
  const end = data.completed_at === null ? now : Date.parse(data.completed_at)
  return Math.max(0, end - Date.parse(started_at))
}

/** How a job stands, in a sentence or two, with what can be done. What changes by the second stands elsewhere. */
export function stateSentence(job: Job, now: number): Html {
  const { processed_emails: done, total_emails: total } = job
  const rows = pluralize(total, 'row')
  const took = formatDuration(tookMs(job, now) ?? 0)
  switch (job.status) {
    case 'queued':
    case 'processing':
      return html`It is under way, as fast as the mail servers allow. You may leave this page: the list goes on.`
    case 'completed':
      return html`It is completed: ${rows} in ${took}.`
    case 'cancelled':
      return html`It was cancelled after ${formatNumber(done)} of ${rows}. What was found out by then is below, and the credits
        for the other rows were given back. Resume goes on where it stopped.`
    case 'failed':
      return html`It could not be finished: something inside the service failed after ${formatNumber(done)} of ${rows}
        (${job.error?.code ?? 'server_error'}). What was found out by then is below, and the credits for the other rows were
        given back. Resume goes on where it stopped; if it fails again, tell whoever runs the service the id of the list,
        ${job.job_id}: its log says why.`
    default:
      return job.status satisfies never
  }
}
