import { onTestFinished } from 'vitest'
import type { UsageLedger } from '../../src/accounts/credits/usage-ledger.ts'
import { composeEngine } from '../../src/compose/engine.ts'
import { write } from '../../src/db/database.ts'
import { decodeResult } from '../../src/engine/verdict/stored-result.ts'
import { addItems } from '../../src/jobs/import/item-import.ts'
import { parseRow } from '../../src/jobs/import/submission.ts'
import { createJob, type Job, type NewJob, readJob } from '../../src/jobs/job-store.ts'
import { ListWorker } from '../../src/jobs/list/list-worker.ts'
import { resultPage } from '../../src/jobs/results/result-store.ts'
import type { WorkerDeps } from '../../src/jobs/worker/worker-deps.ts'
import { createJobDeps, type JobDepsOptions, settled } from './job.ts'
import { queueJobIn } from './queue-job.ts'
import { drainEventLoop } from './wait.ts'

type TestWorkerOptions = JobDepsOptions & {
  readonly ledger?: UsageLedger
  readonly deps?: Partial<WorkerDeps>
}

const STEP_MS = 50

type Owner = NonNullable<NewJob['owner']>

/** Creates a worker like that of a service, with mail servers. */
export async function createTestWorker({ ledger, deps = {}, ...given }: TestWorkerOptions = {}) {
  const jobDeps = await createJobDeps(given)
  const { clock, database, doors } = jobDeps
  const config = jobDeps.configWith()
  const engine = composeEngine(config, doors)
  const sandbox = composeEngine(config, doors, { sandbox: true })
  const progress: Job[] = []
  const failures: [jobId: string, error: unknown][] = []
  const begin = (more: Partial<WorkerDeps> = {}) => {
    const worker = new ListWorker({
      database,
      log: doors.log,
      random: doors.random,
      ledger: ledger ?? null,
      baseUrl: 'https://ev.test',
      engineFor: job => (job.sandbox === 1 ? sandbox : engine),
      egresses: engine.egresses,
      concurrency: config.concurrency,
      greylistDelayMs: config.greylistDelayMs,
      wait: true,
      onProgress: job => progress.push(job),
      onFailure: (jobId, error) => failures.push([jobId, error]),
      ...deps,
      ...more,
    })
    onTestFinished(() => settled(clock, worker.stop()))
    return worker
  }
  const worker = begin()
  onTestFinished(() => Promise.all([engine.close(), sandbox.close()]).then(() => {}))

  /** Submits a job with these texts. */
  async function submit(
    id: string,
    texts: readonly string[],
    owner: Partial<Owner> = {},
    reservation: { amount: number; period: number } | null = null,
  ): Promise<Job> {
    const defaults = {
      accountId: 'acc_a',
      keyId: 'key_a',
      type: 'batch',
      name: null,
      sandbox: false,
    }
    const job = { id, sourceKey: id, source: '{}', owner: { ...defaults, ...owner } as Owner }
    await createJob(database, job)
    await addItems(
      database,
      id,
      texts.map((text, n) => ({ position: n + 1, ...parseRow(text, n + 1) })),
    )
    return write(database, trx => queueJobIn(trx, id, { now: clock.now(), reservation }))
  }

  /** Advances the clock in small steps, so that work without timers continues between them. */
  async function pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += STEP_MS) {
      await clock.advance(STEP_MS)
      await drainEventLoop()
    }
  }

  /** Advances the clock until all of these jobs are finished. */
  async function finished(...ids: readonly string[]): Promise<Job[]> {
    const isDone = async (id: string) => {
      for (;;) {
        const job = await worker.changed(id, new AbortController().signal)
        if (job === null || job.finished_at !== null) return
      }
    }
    await settled(clock, Promise.all(ids.map(isDone)))
    return Promise.all(ids.map(id => readJob(database, id)))
  }

  /** The reason of each row, in order; null if there is no result. */
  async function reasons(jobId: string): Promise<(string | null)[]> {
    const rows = await resultPage(database, { jobId, after: 0, max: 100_000 })
    return rows.map(({ result }) =>
      result === null ? null : (decodeResult(result)?.verdict.reason ?? null),
    )
  }

  return { ...jobDeps, engine, worker, begin, submit, pass, finished, reasons, progress, failures }
}
