import { isExpired, permits } from '../../accounts/key-rights.ts'
import { findPrincipal } from '../../accounts/people/principal.ts'
import { isStorageError } from '../../db/database.ts'
import { accountJob } from '../../jobs/job-list.ts'
import { getProgress, type Job } from '../../jobs/job-store.ts'
import { sleep } from '../../platform/clock.ts'
import type { ApiDeps } from '../api-deps.ts'
import type { Caller } from '../context.ts'
import { eventStream, type StreamEvent } from '../event-stream.ts'
import { newRouter, route } from '../route.ts'
import { eventContent } from '../schemas/answers.ts'
import { PROGRESS_EXAMPLE } from '../schemas/job.ts'
import { DEFAULT_HTTP_TIMINGS } from '../service.ts'
import { presentClasses, presentSummary } from './job-view.ts'
import { jobParams, type LoadJobDeps, loadJob, nextCommit } from './load-job.ts'
import { type Outlook, presentOutlook } from './outlook.ts'

export type JobEventDeps = Pick<
  ApiDeps,
  'clock' | 'database' | 'guard' | 'isStopping' | 'log' | 'outlooks' | 'streams' | 'timings'
> &
  LoadJobDeps

/** Returns a progress report of a job; `outlook` is null if the job is finished. */
const presentProgress = (job: Job, outlook: Outlook | null) => ({
  status: job.state as Exclude<Job['state'], 'loading'>,
  progress: getProgress(job),
  total_emails: job.total,
  processed_emails: job.done,
  classes: presentClasses(job),
  ...(outlook === null ? { rate_per_second: null, seconds_left: null } : presentOutlook(outlook)),
  summary: presentSummary(job),
})

/** Scope of the route, which the key must keep while the stream is open. */
const SCOPE = 'jobs:read'

/** Route that streams the progress of a job. */
export function jobEventRoutes(service: JobEventDeps) {
  const { streams } = service
  const events = route(service, 'GET /v1/jobs/{id}/events', {
    id: 'followJob',
    summary: 'Stream the progress of a job',
    description:
      'Returns a stream of server-sent events: `progress` at once and after each change, at most twice a second, and `end` when the job has finished. The data of both is a `JobProgress`. If the stream closes without `end`, reconnect; it closes when its API key is revoked, rotated or expires. An account can have 20 open streams.',
    scope: SCOPE,
    params: jobParams,
    answer: EVENTS,
    headers: ['X-Accel-Buffering'],
  })
  return newRouter().handle(events, async c => {
    const job = await loadJob(c, service, c.req.valid('param').id)
    const caller = c.get('caller')
    return eventStream(c, service, disconnected => {
      const slot = streams.enter(caller.account.id)
      disconnected.addEventListener('abort', slot.leave)
      return progress(service, { job, caller }, AbortSignal.any([disconnected, slot.stopping]))
    })
  })
}

const EVENTS = {
  description: 'Events until the job has finished',
  content: {
    'text/event-stream': eventContent(
      'JobProgress',
      `retry: 3000\n\nevent: progress\ndata: ${JSON.stringify(PROGRESS_EXAMPLE)}\n\n`,
    ),
  },
}

/**
 * Yields the progress of a job after each change, until the job has finished, the caller may no
 * longer see it, the signal aborts or the service stops.
 */
async function* progress(
  service: JobEventDeps,
  { job, caller }: { readonly job: Job; readonly caller: Caller },
  signal: AbortSignal,
): AsyncGenerator<StreamEvent, void> {
  const { clock, database, isStopping, outlooks } = service
  let sent = ''
  for (let last = job; !signal.aborted && !isStopping(); ) {
    const outlook = await unlessUnavailable(outlooks.get(last))
    const data = presentProgress(last, outlook ?? null)
    if (last.finished_at !== null) return yield { event: 'end', data }
    const text = JSON.stringify(data)
    if (text !== sent) yield { event: 'progress', data }
    sent = text
    await nextChange(service, job.id, signal)
    if ((await unlessUnavailable(mayFollow(service, caller))) === false) return
    const current = await unlessUnavailable(accountJob(database, job.account_id ?? '', job.id))
    if (current === undefined) continue
    // A job is cancelled before it is deleted.
    last = current ?? { ...last, state: 'cancelled', finished_at: clock.now() }
  }
}

/**
 * Whether the key or the person of the caller still exists and has its rights. After a rotation of
 * the key, the client reconnects with a secret that is valid.
 */
async function mayFollow(
  { clock, database }: Pick<JobEventDeps, 'clock' | 'database'>,
  { key, secretExpiresAt }: Caller,
): Promise<boolean> {
  const found = await findPrincipal(database, key.id)
  if (found === null || !permits(found.key.scopes, SCOPE)) return false
  if (found.key.hint !== key.hint) return false
  const now = clock.now()
  return !isExpired(found.key.expiresAt, now) && !isExpired(secretExpiresAt, now)
}

/** Ignores storage errors: the stream continues when the database is back. */
const unlessUnavailable = <T>(read: Promise<T>): Promise<T | undefined> =>
  read.catch(error => {
    if (isStorageError(error)) return undefined
    throw error
  })

async function nextChange(
  service: JobEventDeps,
  jobId: string,
  signal: AbortSignal,
): Promise<void> {
  const { clock, timings = DEFAULT_HTTP_TIMINGS } = service
  const notBefore = clock.monotonicNow() + timings.progressMs
  await nextCommit(service, jobId, timings.pollMs, signal)
  await sleep(clock, Math.max(0, notBefore - clock.monotonicNow()), signal)
}
