import type { Job } from '../../src/jobs/job-store.ts'
import { ListWorker } from '../../src/jobs/list/list-worker.ts'
import { silentLog } from '../../src/platform/log.ts'
import type { createTestService } from './service.ts'

type TestService = Pick<
  Awaited<ReturnType<typeof createTestService>>,
  'service' | 'database' | 'ledger' | 'random' | 'settled'
>

/** Processes a job to its end, like a worker process that is started after its submission. */
export async function finishJob(
  { service: { engine }, database, ledger, random, settled }: TestService,
  jobId: string,
): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<Job>()
  const worker = new ListWorker({
    database,
    log: silentLog,
    random,
    ledger,
    baseUrl: 'https://ev.test',
    engineFor: () => engine,
    egresses: engine.egresses,
    concurrency: 10,
    greylistDelayMs: null,
    wait: true,
    onProgress: job => job.finished_at !== null && resolve(job),
  })
  worker.take(jobId)
  await settled(promise)
  await settled(worker.stop())
}
