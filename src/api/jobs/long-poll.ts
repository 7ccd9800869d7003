import { accountJob } from '../../jobs/job-list.ts'
import { type Job, progressOf } from '../../jobs/job-store.ts'
import { SECOND, sleep } from '../../platform/clock.ts'
import type { Service } from '../service.ts'
import { DEFAULT_HTTP_TIMINGS } from '../timings.ts'

/** Longer ones are cut off by many a proxy. */
export const WAIT_S_MAX = 60

/**
 * The job as it stands when its state or its progress has changed, or when the time is over, the client is gone or the
 * service stops. A job that is finished is given at once; one that is deleted meanwhile is null.
 */
export async function waitForJobChange(
  service: Service,
  job: Job,
  o: { readonly waitS: number; readonly client: AbortSignal },
): Promise<Job | null> {
  const { clock, database, isStopping, timings = DEFAULT_HTTP_TIMINGS } = service
  const end = clock.monotonicNow() + o.waitS * SECOND
  let now: Job | null = job
  while (now !== null && isAsBefore(now, job) && clock.monotonicNow() < end) {
    if (now.finished_at !== null || o.client.aborted || isStopping()) break
    await nextCommit(
      service,
      job.id,
      Math.min(timings.pollMs, end - clock.monotonicNow()),
      o.client,
    )
    now = await accountJob(database, job.account_id ?? '', job.id)
  }
  return now
}

const isAsBefore = (now: Job, before: Job) =>
  now.state === before.state && progressOf(now) === progressOf(before)

/** Until the worker has committed something of the job, at most for a while. */
export async function nextCommit(
  { clock, worker }: Service,
  jobId: string,
  atMostMs: number,
  client: AbortSignal,
): Promise<void> {
  const over = new AbortController()
  const { signal } = over
  const onGone = () => over.abort()
  client.addEventListener('abort', onGone, { once: true })
  await Promise.race([sleep(clock, atMostMs, signal), worker.changed(jobId, signal)])
  client.removeEventListener('abort', onGone)
  over.abort()
}
