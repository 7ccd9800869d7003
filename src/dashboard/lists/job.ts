import type { Context } from 'hono'
import { Hono } from 'hono'
import { html } from 'hono/html'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import type { Job } from '../../client/types.ts'
import type { ApiProblem } from '../api.ts'
import type { DashboardDeps, Env } from '../deps.ts'
import { confirmed, form } from '../page/form.ts'
import { nonceField } from '../page/form-nonce.ts'
import { type Html, NOTHING } from '../page/html.ts'
import { page, part } from '../page/layout.ts'
import { notice } from '../page/notice.ts'
import { time } from '../page/text.ts'
import { may } from '../session/signed-in.ts'
import { chartsOf } from './charts.ts'
import { downloadForm } from './download.ts'
import { filter } from './filter.ts'
import { readFilter } from './filters.ts'
import { isUnderWay, stateBadge, stateSentence, titleOf } from './labels.ts'
import { progress } from './progress.ts'
import { newRows, rows, rowsText } from './rows.ts'

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
