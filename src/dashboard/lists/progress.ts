import { type Context, Hono } from 'hono'
import { html } from 'hono/html'
import type { Job, JobProgress } from '../../client/types.ts'
import { SECOND } from '../../platform/clock.ts'
import { formatEstimate, formatNumber, formatProgress } from '../../platform/format.ts'
import { proxy } from '../api.ts'
import type { DashboardDeps, Env } from '../deps.ts'
import { bar } from '../page/chart.ts'
import type { Html } from '../page/html.ts'
import { CLASSES } from '../page/text.ts'
import { whileSignedIn } from '../session/sessions.ts'
import { classChart, countReasons, liveReasons } from './charts.ts'
import { chipCounts } from './filter.ts'
import { jobPath } from './find-job.ts'
import { type Wait, waitList } from './wait.ts'

/** Route that streams the progress of a list as server-sent events with the parts of its page. */
export const progressRoutes = (deps: DashboardDeps) =>
  new Hono<Env>().get('/lists/:id/events', async c => {
    const id = c.req.param('id')
    const response = await c.get('api').fetch(`${jobPath(id)}/events`)
    if (!response.ok || response.body === null) return proxy(c, response)
    const events = whileSignedIn(c, deps, response.body).pipeThrough(renderEvents(c, deps, id))
    return proxy(c, new Response(events, response))
  })

/**
 * Replaces the data of each event by the parts of the page that it changes, as `live.js` inserts
 * them: the page and its updates have one formatter.
 */
function renderEvents(
  c: Context<Env>,
  { clock }: Pick<DashboardDeps, 'clock'>,
  jobId: string,
): TransformStream<Uint8Array, Uint8Array> {
  const [decoder, encoder] = [new TextDecoder(), new TextEncoder()]
  const isDue = createReasonTimer(clock)
  let rest = ''
  return new TransformStream({
    async transform(chunk, controller) {
      const blocks = (rest + decoder.decode(chunk, { stream: true })).split(EVENT_END)
      rest = blocks.pop() ?? ''
      for (const block of blocks) {
        controller.enqueue(
          encoder.encode(`${await renderEvent(c, jobId, block, isDue)}${EVENT_END}`),
        )
      }
    },
  })
}

const EVENT_END = '\n\n'
const DATA = /^data: (.*)$/m

/** Longest time between a change and the next count of the reasons. */
const REASONS_MS = 10 * SECOND
/** The same while the number of results doubles in that time, as at the start of a list. */
const GROWING_REASONS_MS = SECOND

/** Returns a function that says whether to count the reasons again, with this number of results. */
function createReasonTimer(clock: DashboardDeps['clock']): (done: number) => boolean {
  let counted = -1
  let countedAt = 0
  return done => {
    const now = clock.monotonicNow()
    const everyMs = done >= 2 * counted ? GROWING_REASONS_MS : REASONS_MS
    if (done === counted || (counted >= 0 && now - countedAt < everyMs)) return false
    counted = done
    countedAt = now
    return true
  }
}

async function renderEvent(
  c: Context<Env>,
  jobId: string,
  block: string,
  isDue: (done: number) => boolean,
): Promise<string> {
  const [line, data] = DATA.exec(block) ?? []
  // The time of a reconnection, or a heartbeat.
  if (line === undefined || data === undefined) return block
  const progress: JobProgress = JSON.parse(data)
  const update = await toUpdate(c, jobId, progress, isDue(progress.processed_emails))
  return block.replace(line, () => `data: ${JSON.stringify(update)}`)
}

/** The data of an event for `live.js`. */
type Update = {
  /** Whole percent of the rows that are done. */
  readonly percent: number
  /** Each replaces the element with its ID. */
  readonly parts: readonly string[]
}

async function toUpdate(
  c: Context<Env>,
  jobId: string,
  progress: JobProgress,
  withReasons: boolean,
): Promise<Update> {
  const state: LiveState = {
    done: progress.processed_emails,
    total: progress.total_emails,
    classes: progress.classes,
    rate: progress.rate_per_second,
    left: progress.seconds_left === null ? null : formatEstimate(progress.seconds_left * SECOND),
    waits: progress.waiting_for ?? [],
  }
  const parts = [
    ...liveParts(c, state),
    classChart(jobId, state.classes),
    ...chipCounts(state),
    ...(withReasons ? [await countReasons(c, jobId, state.done)] : []),
  ]
  return {
    percent: toPercent(state),
    parts: await Promise.all(parts.map(async part => String(await part).trim())),
  }
}

/** What an active list shows about its progress. */
type LiveState = {
  readonly done: number
  readonly total: number
  readonly classes: Job['data']['classes']
  /** Rows per second; null if it is not known. */
  readonly rate: number | null
  /** The remaining time in words; null if it is not known. */
  readonly left: string | null
  readonly waits: readonly Wait[]
}

const toPercent = ({ done, total }: LiveState) => Math.floor((100 * done) / total)

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
  const state: LiveState = {
    done: job.processed_emails,
    total: job.total_emails,
    classes: job.data.classes,
    rate: job.rate_per_second ?? null,
    left: job.estimated_time,
    waits: job.waiting_for ?? [],
  }
  const [figures, meter, segments, waits] = liveParts(c, state)
  return html`
    <section class="card live" id="live" data-events="/lists/${job.job_id}/events" aria-labelledby="live-title"
      hx-get="/lists/${job.job_id}" hx-trigger="ended" hx-target="#job" hx-select="#job" hx-select-oob="#head,#rows"
      hx-swap="outerHTML settle:0s">
      <h2 id="live-title" class="unseen">Progress</h2>
      ${figures} ${meter} ${segments}
      <div class="waits">${waits}</div>
      <p class="unseen" id="live-said" role="status"></p>
      <noscript><p>Reload the page to update the progress.</p></noscript>
    </section>`
}

/** Renders the parts of the progress that change. */
function liveParts(c: Context<Env>, state: LiveState): readonly [Html, Html, Html, Html] {
  const { done, total, classes, rate, left, waits } = state
  const segments = CLASSES.map(kind => ({ kind, value: classes[kind] }))
  return [
    html`
      <div class="outlook" id="live-figures">
        <b>${formatProgress(done, total)}</b>
        <dl>
          <div><dt>Done of ${formatNumber(total)}</dt><dd>${formatNumber(done)}</dd></div>
          <div><dt>Per second</dt><dd>${rate === null ? '–' : formatRate(rate)}</dd></div>
          <div><dt>Time left</dt><dd>${left ?? '–'}</dd></div>
        </dl>
      </div>`,
    html`<progress class="unseen" id="live-meter" max="${total}" value="${done}" aria-labelledby="live-title"></progress>`,
    html`<div class="bars" id="live-bar">${bar(segments, total)}</div>`,
    waitList(waits, c.get('user').isAdmin),
  ]
}

/** Below 10 rows per second a decimal tells more. */
const formatRate = (rate: number) =>
  formatNumber(rate < 10 ? Math.round(10 * rate) / 10 : Math.round(rate))
