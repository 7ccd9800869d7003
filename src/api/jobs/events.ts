import { createRoute, z } from '@hono/zod-openapi'
import { isStorageError } from '../../db/database.ts'
import { accountJob } from '../../jobs/job-list.ts'
import { type Job, progressOf } from '../../jobs/job-store.ts'
import { type Clock, SECOND, sleep } from '../../platform/clock.ts'
import { eventStream, type StreamEvent } from '../event-stream.ts'
import { requireKey } from '../middleware/require-key.ts'
import { newRouter } from '../router.ts'
import { errorResponses, SECURITY } from '../schemas/error.ts'
import { JobProgress, PROGRESS_EXAMPLE } from '../schemas/job.ts'
import type { Service } from '../service.ts'
import { stateOf } from '../state.ts'
import { DEFAULT_HTTP_TIMINGS } from '../timings.ts'
import { classesOf, summaryOf } from './job-view.ts'
import { loadJob } from './load-job.ts'
import { nextCommit } from './long-poll.ts'

/** The pace is that of so long a time: a connection brings its results in bursts. */
const RATE_OVER_MS = 10 * SECOND
/** Over less, it would be that of one burst. */
const RATE_SINCE_MS = SECOND

/** Tells how a job stands, look after look, and how fast it goes. */
export function createProgress(clock: Pick<Clock, 'monotonicNow'>) {
  const looks: { readonly at: number; readonly done: number }[] = []

  /** Rows a second since the oldest look that counts; null: too few looks. */
  const rateOf = ({ done }: Job): number | null => {
    const now = clock.monotonicNow()
    looks.push({ at: now, done })
    while ((looks[1]?.at ?? now) <= now - RATE_OVER_MS) looks.shift()
    const [first = { at: now, done }] = looks
    const tookMs = now - first.at
    if (tookMs < RATE_SINCE_MS) return null
    return Math.round((10 * SECOND * (done - first.done)) / tookMs) / 10
  }

  return (job: Job) => {
    const rate = job.finished_at === null ? rateOf(job) : null
    return {
      status: job.state as Exclude<Job['state'], 'loading'>,
      progress: progressOf(job),
      total_emails: job.total,
      processed_emails: job.done,
      classes: classesOf(job),
      rate_per_second: rate,
      seconds_left: rate ? Math.ceil((job.total - job.done) / rate) : null,
      summary: summaryOf(job),
    }
  }
}

/** How a job stands, told as it happens. */
export function jobEventRoutes(service: Service) {
  const { streams } = stateOf(service)
  const events = createRoute({
    ...{ method: 'get', path: '/v1/jobs/{id}/events', operationId: 'followJob' },
    summary: 'How a job stands, as server-sent events',
    description:
      'An event `progress` at once and whenever something changed, at most two a second; `end` when the job has ended, and then the stream ends. Their data is a `JobProgress`. A stream that ends without `end` was cut off: ask again. An account has 20 at the same time.',
    tags: ['Jobs'],
    security: SECURITY,
    middleware: requireKey(service, { scope: 'jobs:read', counts: null, bodyMax: 0 }),
    request: { params },
    responses: { 200: EVENTS, ...errorResponses('invalid_request', 'not_found', 'rate_limit') },
  } as const)
  const router = newRouter()
  router.openAPIRegistry.register('JobProgress', JobProgress)
  return router.openapi(events, async c => {
    const job = await loadJob(c, service, c.req.valid('param').id)
    return eventStream(c, service, gone => {
      const place = streams.enter(c.get('caller').account.id)
      gone.addEventListener('abort', place.leave)
      return progress(service, job, AbortSignal.any([gone, place.stopping]))
    })
  })
}

const params = z.object({ id: z.string().max(100).openapi({ example: 'job_xyz789' }) })

const EVENTS = {
  description: 'Events, until the job has ended',
  content: {
    'text/event-stream': {
      schema: z.string(),
      example: `retry: 3000\n\nevent: progress\ndata: ${JSON.stringify(PROGRESS_EXAMPLE)}\n\n`,
    },
  },
}

/** How the job stands, whenever that is another than what was told last, to its end or until it is over. */
async function* progress(
  service: Service,
  job: Job,
  over: AbortSignal,
): AsyncGenerator<StreamEvent, void> {
  const { clock, database, isStopping } = service
  const progress = createProgress(clock)
  let sent = ''
  for (let last = job; !over.aborted && !isStopping(); ) {
    const data = progress(last)
    if (last.finished_at !== null) return yield { event: 'end', data }
    const text = JSON.stringify(data)
    if (text !== sent) yield { event: 'progress', data }
    sent = text
    await nextChange(service, job.id, over)
    const now = await unlessDisconnected(accountJob(database, job.account_id ?? '', job.id))
    if (now === undefined) continue
    // One that was deleted was cancelled first.
    last = now ?? { ...last, state: 'cancelled', finished_at: clock.now() }
  }
}

/** A database that cannot be had for a while is no end: whoever listens hears more when it is there again. */
const unlessDisconnected = <T>(read: Promise<T>): Promise<T | undefined> =>
  read.catch(error => {
    if (isStorageError(error)) return undefined
    throw error
  })

async function nextChange(service: Service, jobId: string, over: AbortSignal): Promise<void> {
  const { clock, timings = DEFAULT_HTTP_TIMINGS } = service
  const notBefore = clock.monotonicNow() + timings.progressMs
  await nextCommit(service, jobId, timings.pollMs, over)
  await sleep(clock, Math.max(0, notBefore - clock.monotonicNow()), over)
}
