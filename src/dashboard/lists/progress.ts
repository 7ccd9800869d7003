import { Hono } from 'hono'
import { html } from 'hono/html'
import type { Job } from '../../client/types.ts'
import { formatNumber } from '../../platform/format.ts'
import { proxy } from '../api-proxy.ts'
import type { DashboardDeps, Env } from '../deps.ts'
import type { Html } from '../page/html.ts'
import { badge } from '../page/text.ts'
import { whileSignedIn } from '../session/while-signed-in.ts'
import { CLASSES } from './labels.ts'

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
export const progress = (job: Job): Html => html`
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
