import type { Context } from 'hono'
import { Hono } from 'hono'
import { html } from 'hono/html'
import type { Breakdown, Job } from '../../client/types.ts'
import { pluralize } from '../../platform/format.ts'
import type { Env } from '../deps.ts'
import { bars, donut, measureOf } from '../page/chart.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { page, part } from '../page/layout.ts'
import { meanings, reasonWord } from '../page/reason.ts'
import { CLASSES, titleOf } from './labels.ts'

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
  const measure = { ...measureOf(all), whole: done }
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
