import type { CallOptions } from '../connection.ts'
import type { ClientDeps } from '../deps.ts'
import type { Job } from '../types.ts'

export type WaitOptions = CallOptions & {
  /** Called with the job as it stands, at first and whenever it has moved. */
  readonly onProgress?: ((job: Job) => void) | undefined
}

/** Asks for a job until it has ended. `ask` may take its time: it answers when the job has moved. */
export async function waitForEnd(
  ask: (waitS: number) => Promise<Job>,
  deps: ClientDeps,
  { signal, onProgress }: WaitOptions,
): Promise<Job> {
  let seen = -1
  for (let asked = 0; ; asked++) {
    const job = await ask(asked === 0 ? 0 : WAIT_S)
    if (job.processed_emails !== seen || isDone(job)) onProgress?.(job)
    seen = job.processed_emails
    if (isDone(job)) return job
    const pauseMs = Math.min(PAUSE_MAX_MS, PAUSE_MS * 1.5 ** asked)
    await deps.sleep(Math.round(pauseMs), signal)
    signal?.throwIfAborted()
  }
}

const isDone = ({ status }: Job) => status !== 'queued' && status !== 'processing'

/** Below what proxies allow a silent request (60 s). */
const WAIT_S = 25
/** A job moves many times a second, and the free plan allows ten requests a minute: short at first, then every 8 s. */
const PAUSE_MS = 500
const PAUSE_MAX_MS = 8_000
