import { type Context, Hono } from 'hono'
import { html } from 'hono/html'
import type { Job } from '../../client/types.ts'
import { formatNumber, formatProgress } from '../../platform/format.ts'
import { proxy } from '../api.ts'
import type { DashboardDeps, Env } from '../deps.ts'
import { bar } from '../page/chart.ts'
import type { Html } from '../page/html.ts'
import { CLASSES } from '../page/text.ts'
import { whileSignedIn } from '../session/sessions.ts'
import { classChart, liveReasons } from './charts.ts'
import { waitList } from './wait.ts'

/** Route that streams the progress of a list as server-sent events. */
export const progressRoutes = (deps: DashboardDeps) =>
  new Hono<Env>().get('/lists/:id/events', async c => {
    const path = `/v1/jobs/${encodeURIComponent(c.req.param('id'))}/events`
    const response = await c.get('api').fetch(path)
    if (!response.ok || response.body === null) return proxy(c, response)
    return proxy(c, new Response(whileSignedIn(c, deps, response.body), response))
  })

/**
 * Renders the progress, the classes and the reasons of an active list, which `live.js` updates in
 * place without changing their height.
 */
export const progress = async (c: Context<Env>, job: Job): Promise<Html> => html`
  <div class="grid running">
    <div>${progressCard(c, job)} ${classChart(job.job_id, job.data.classes)}</div>
    ${await liveReasons(c, job)}
  </div>`

/** When the list ends, htmx replaces the head of the page, this section and the chart. */
function progressCard(c: Context<Env>, job: Job): Html {
  const { processed_emails: done, total_emails: total, data } = job
  const segments = CLASSES.map(kind => ({ kind, value: data.classes[kind] }))
  return html`
    <section class="card live" id="live" data-events="/lists/${job.job_id}/events" aria-labelledby="live-title"
      hx-get="/lists/${job.job_id}" hx-trigger="ended" hx-target="#job" hx-select="#job" hx-select-oob="#head,#rows"
      hx-swap="outerHTML settle:0s">
      <h2 id="live-title" class="unseen">Progress</h2>
      <div class="outlook">
        <b data-live="percent">${formatProgress(done, total)}</b>
        <dl>
          <div><dt>Done of ${formatNumber(total)}</dt><dd data-live="done">${formatNumber(done)}</dd></div>
          <div><dt>Per second</dt><dd data-live="rate">${job.rate_per_second == null ? '–' : formatNumber(job.rate_per_second)}</dd></div>
          <div><dt>Time left</dt><dd data-live="left">${job.estimated_time ?? '–'}</dd></div>
        </dl>
      </div>
      <progress class="unseen" max="${total}" value="${done}" aria-labelledby="live-title"></progress>
      <div class="bars" data-live-bar>${bar(segments, total)}</div>
      <div class="waits">
        ${waitList(job, c.get('user').isAdmin)}
      </div>
      <p class="unseen" data-live="said" role="status"></p>
      <noscript><p>Reload the page to update the progress.</p></noscript>
    </section>`
}
