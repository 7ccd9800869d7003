import type { CallOptions } from '../connection.ts'
import type { ClientDeps } from '../deps.ts'
import type { Job } from '../types.ts'

export type WaitOptions = CallOptions & {
  /** Called with the job at first and whenever it has progressed. */
  readonly onProgress?: ((job: Job) => void) | undefined
}

/** Polls a job until it has ended. `poll` may wait until the job has progressed. */
export async function waitForEnd(
  poll: (waitS: number) => Promise<Job>,
  deps: ClientDeps,
  { signal, onProgress }: WaitOptions,
): Promise<Job> {
  let lastProcessed = -1
  for (let polls = 0; ; polls++) {
    const job = await poll(polls === 0 ? 0 : WAIT_S)
    if (job.processed_emails !== lastProcessed || isDone(job)) onProgress?.(job)
    lastProcessed = job.processed_emails
    if (isDone(job)) return job
    const pauseMs = Math.min(PAUSE_MAX_MS, PAUSE_MS * 1.5 ** polls)
    await deps.sleep(Math.round(pauseMs), signal)
    signal?.throwIfAborted()
  }
}

const isDone = ({ status }: Job) => status !== 'queued' && status !== 'processing'

/** Below the idle timeout of proxies (60 s). */
const WAIT_S = 25
/**
 * A job progresses many times per second, and the free plan allows ten requests per minute: the
 * pause grows from 0.5 s to 8 s.
 */
const PAUSE_MS = 500
const PAUSE_MAX_MS = 8_000
