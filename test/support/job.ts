import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { composeEngine, type ExternalDeps } from '../../src/compose/engine.ts'
import { type RawSettings, toConfig } from '../../src/config/config.ts'
import type { Database } from '../../src/db/database.ts'
import type { Dial } from '../../src/engine/smtp/dial.ts'
import { decodeResult } from '../../src/engine/verdict/stored-result.ts'
import type { Result } from '../../src/engine/verdict/verdict.ts'
import { FeedbackKnowledge } from '../../src/feedback/knowledge.ts'
import { addItems } from '../../src/jobs/import/item-import.ts'
import { parseRow } from '../../src/jobs/import/submission.ts'
import { createJob, type Job, readJob } from '../../src/jobs/job-store.ts'
import { ListWorker } from '../../src/jobs/list/list-worker.ts'
import { resultPage } from '../../src/jobs/results/result-store.ts'
import type { Clock } from '../../src/platform/clock.ts'
import { type Log, silentLog } from '../../src/platform/log.ts'
import { type FakeClock, fakeClock } from './clock.ts'
import { tempDatabase, tempFolder } from './database.ts'
import { mail } from './engine.ts'
import { type MxScript, scriptedMx } from './mx.ts'
import { queueJob } from './queue-job.ts'
import { countedRandom } from './random.ts'
import { drainEventLoop } from './wait.ts'
import { type ZoneEntry, zone } from './zone.ts'

const JOB = 'job_a'
const STEP_MS = 50
const DAY_MS = 86_400_000

export type JobDepsOptions = {
  readonly script?: MxScript | NonNullable<MxScript['answer']>
  /** Names in addition to `a.test` and `b.test`, which have an exchanger each. */
  readonly zone?: Readonly<Record<string, ZoneEntry>>
  readonly flags?: Readonly<Record<string, string>>
  readonly structures?: NonNullable<RawSettings['structures']>
  /** Replaces the servers that play `script`. */
  readonly dial?: NonNullable<ExternalDeps['dial']>
  /** Changes how the servers that play `script` are dialed, as by a latency. */
  readonly wrapDial?: (mx: Dial, clock: Clock) => Dial
}

type TestJobOptions = JobDepsOptions & { readonly texts: readonly string[] }

type WorkOptions = {
  readonly wait?: boolean
  /** Keeps answers in the database, as `ev bulk` does. */
  readonly cache?: boolean
  readonly stopping?: AbortSignal
  /** Called with the worker once it has started. */
  readonly onStart?: (worker: ListWorker) => void
  readonly structures?: NonNullable<RawSettings['structures']>
}

/** Creates a database, mail servers, and a fake clock. */
export async function createJobDeps({ script = {}, flags = {}, ...given }: JobDepsOptions) {
  const clock = fakeClock()
  const file = join(tempFolder(), 'ev.sqlite')
  const database = await tempDatabase({ clock, file })
  const names = zone({
    ...mail('a.test', '192.0.2.1'),
    ...mail('b.test', '192.0.2.2'),
    ...given.zone,
  })
  const mx = scriptedMx(script)
  const loggedErrors: string[] = []
  const log: Log = { ...silentLog, error: message => void loggedErrors.push(message) }
  const configWith = (structures = given.structures ?? {}) =>
    toConfig({
      flags: {
        helo: 'probe.test',
        allowRanges: '192.0.2.0/24',
        specialDomains: 'on',
        sessionsPerSecond: '1000',
        ...flags,
      },
      environment: {},
      file: null,
      structures,
    })
  const dial = given.dial ?? given.wrapDial?.(mx, clock) ?? mx
  const doors = { clock, random: countedRandom(), resolver: names, dial, log }
  return { clock, file, database, names, mx, loggedErrors, configWith, doors }
}

/** Creates a job with its dependencies. */
export async function createTestJob({ texts, ...given }: TestJobOptions) {
  const { clock, database, names, mx, loggedErrors, configWith, doors } = await createJobDeps(given)
  await load(database, texts)

  /** Processes the job like a separate process, until it is finished or `stopping` aborts. */
  async function work(options: WorkOptions = {}): Promise<Job> {
    const config = configWith(options.structures)
    const finished = Promise.withResolvers<void>()
    const worker = new ListWorker({
      database,
      log: doors.log,
      random: doors.random,
      feedback: new FeedbackKnowledge(database, config),
      engineFor: () => engine,
      egresses: ['default'],
      ledger: null,
      baseUrl: '',
      retryStorageErrors: false,
      concurrency: config.concurrency,
      greylistDelayMs: config.greylistDelayMs,
      wait: options.wait ?? true,
      onProgress: job => job.state === 'completed' && finished.resolve(),
      onFailure: (_, error) => finished.reject(error),
    })
    const cache = options.cache ? { cache: worker.cache } : {}
    const engine = composeEngine(config, doors, cache)
    onTestFinished(() => engine.close())
    options.stopping?.addEventListener('abort', () => finished.resolve())
    if (options.stopping?.aborted) finished.resolve()
    worker.take(JOB)
    options.onStart?.(worker)
    const run = finished.promise.finally(() => worker.stop())
    await settled(clock, run)
    return readJob(database, JOB)
  }

  return {
    clock,
    database,
    mx,
    zone: names,
    loggedErrors,
    work,
    results: () => resultsOf(database, texts.length),
    /** The reason of each row, in order; null if there is no result. */
    reasons: async () =>
      (await resultsOf(database, texts.length)).map(result => result?.verdict.reason ?? null),
    /** The probed recipients in order, without random ones. */
    asked: () =>
      mx
        .lines()
        .map(line => /^RCPT TO:<(.*)>$/.exec(line)?.[1] ?? '')
        .filter(to => to !== '' && texts.includes(to)),
  }
}

async function load(database: Database, texts: readonly string[]): Promise<void> {
  await createJob(database, { id: JOB, sourceKey: 's', source: '{}' })
  await addItems(
    database,
    JOB,
    texts.map((text, n) => ({ position: n + 1, ...parseRow(text, n + 1) })),
  )
  await queueJob(database, JOB)
}

async function resultsOf(database: Database, max: number): Promise<(Result | null)[]> {
  const rows = await resultPage(database, { jobId: JOB, after: 0, max })
  return rows.map(({ result }) => (result === null ? null : decodeResult(result)))
}

/** Advances the clock until the promise settles, by at most a day. */
export async function settled<T>(clock: FakeClock, promise: Promise<T>): Promise<T> {
  let isSettled = false
  const settle = () => {
    isSettled = true
  }
  promise.then(settle, settle)
  await drainEventLoop()
  for (let ms = 0; !isSettled; ms += STEP_MS) {
    if (ms > DAY_MS) throw new Error('the promise did not settle within a day')
    // Short steps at first, so that work without timers continues between them.
    await clock.advance(ms < 5_000 ? STEP_MS : 20 * STEP_MS)
    await drainEventLoop()
  }
  return promise
}
