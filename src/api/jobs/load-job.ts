import type { Context } from 'hono'
import { getJob } from '../../jobs/change-job.ts'
import { jobError } from '../../jobs/errors.ts'
import { accountJob } from '../../jobs/job-list.ts'
import { getProgress, type Job } from '../../jobs/job-store.ts'
import { onAbort } from '../../platform/abort.ts'
import { SECOND, sleep } from '../../platform/clock.ts'
import type { ApiDeps } from '../api-deps.ts'
import type { Env } from '../context.ts'
import { idParams } from '../schemas/fields.ts'
import { DEFAULT_HTTP_TIMINGS } from '../service.ts'

export type LoadJobDeps = Pick<
  ApiDeps,
  'clock' | 'database' | 'isStopping' | 'metrics' | 'timings' | 'worker'
>

/** Path parameters of a job. */
export const jobParams = idParams('ID of the job.', 'job_xyz789')

/**
 * Loads the job of a path parameter. A job of another account is reported as missing, and a live
 * one for a test key.
 */
export async function loadJob(c: Context<Env>, service: LoadJobDeps, id: string): Promise<Job> {
  const { account, key } = c.get('caller')
  const job = await getJob(service, { jobId: id, accountId: account.id })
  return key.isTest && job.sandbox === 0 ? noSuchJob(id) : job
}

export function noSuchJob(id: string): never {
  throw jobError('job_not_found', { id })
}

/** Many proxies cut off longer requests. */
export const WAIT_S_MAX = 60

/**
 * Resolves with the job when its state or progress has changed, the time is over, the client has
 * disconnected or the service stops; at once if the job is finished. Resolves with null if the job
 * is deleted before.
 */
export async function waitForJobChange(
  service: LoadJobDeps,
  job: Job,
  o: { readonly waitS: number; readonly client: AbortSignal },
): Promise<Job | null> {
  const { clock, database, isStopping, timings = DEFAULT_HTTP_TIMINGS } = service
  const end = clock.monotonicNow() + o.waitS * SECOND
  let current: Job | null = job
  while (current !== null && isUnchanged(current, job) && clock.monotonicNow() < end) {
    if (current.finished_at !== null || o.client.aborted || isStopping()) break
    await nextCommit(
      service,
      job.id,
      Math.min(timings.pollMs, end - clock.monotonicNow()),
      o.client,
    )
    current = await accountJob(database, job.account_id ?? '', job.id)
  }
  return current
}

const isUnchanged = (current: Job, before: Job) =>
  current.state === before.state && getProgress(current) === getProgress(before)

/** Waits until the worker has committed a change of the job, at most for `timeoutMs`. */
export async function nextCommit(
  { clock, worker }: LoadJobDeps,
  jobId: string,
  timeoutMs: number,
  client: AbortSignal,
): Promise<void> {
  const done = new AbortController()
  const { signal } = done
  const unsubscribe = onAbort(client, () => done.abort())
  await Promise.race([sleep(clock, timeoutMs, signal), worker.changed(jobId, signal)])
  unsubscribe()
  done.abort()
}
