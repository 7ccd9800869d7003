import { onTestFinished } from 'vitest'
import { createAccount } from '../../src/accounts/account-store.ts'
import { newSecret } from '../../src/accounts/key.ts'
import { createKey } from '../../src/accounts/key-store.ts'
import { composeEngine, listFiles } from '../../src/compose/engine.ts'
import type { Timings } from '../../src/compose/timings.ts'
import { composeWork, type Services } from '../../src/compose/worker.ts'
import { toConfig } from '../../src/config/config.ts'
import { type Database, write } from '../../src/db/database.ts'
import { openLists } from '../../src/engine/lists.ts'
import { decodeResult } from '../../src/engine/verdict/stored-result.ts'
import type { Result } from '../../src/engine/verdict/verdict.ts'
import { addItems } from '../../src/jobs/import/item-import.ts'
import { parseRow } from '../../src/jobs/import/submission.ts'
import { createJob, type Job, type NewJob, readJob } from '../../src/jobs/job-store.ts'
import { ListWorker } from '../../src/jobs/list/list-worker.ts'
import { resultPage } from '../../src/jobs/results/result-store.ts'
import type { WorkerMembership } from '../../src/jobs/worker/worker-deps.ts'
import { systemClock } from '../../src/platform/clock.ts'
import type { Log } from '../../src/platform/log.ts'
import { systemRandom } from '../../src/platform/random.ts'
import { createWebhook } from '../../src/webhooks/endpoint-store.ts'
import { tempFolder } from './database.ts'
import { mail } from './engine.ts'
import { FAST_TIMINGS } from './fast-timings.ts'
import { type MxScript, scriptedMx } from './mx.ts'
import { openServer, tempPostgres } from './postgres-pool.ts'
import { queueJobIn } from './queue-job.ts'
import { waitUntil } from './wait.ts'
import { zone } from './zone.ts'

export type Mail = {
  readonly script: MxScript | NonNullable<MxScript['answer']>
  /** Number of domains with a separate exchanger: `d0.test`, `d1.test` … */
  readonly domains: number
  readonly timings?: Timings
}

/** Creates a PostgreSQL database and the mail servers that all workers probe. */
export async function cluster({ script, domains, timings = FAST_TIMINGS }: Mail) {
  const url = await tempPostgres()
  const database = await openServer(url)
  onTestFinished(() => database.close())
  await createOwner(database)
  const names = Array.from({ length: domains }, (_, n) => mail(`d${n}.test`, `192.0.2.${n + 1}`))
  const resolver = zone(Object.assign({}, ...names))
  const mx = scriptedMx(script)
  const loggedErrors: string[] = []
  const joined: Services[] = []
  const log: Log = {
    debug() {},
    info() {},
    warn() {},
    error: (message, fields) =>
      void loggedErrors.push(`${message} ${JSON.stringify(fields ?? {})}`),
  }

  const configWith = (flags: Readonly<Record<string, string>>) =>
    toConfig({
      flags: {
        helo: 'probe.test',
        allowRanges: '192.0.2.0/24',
        specialDomains: 'on',
        sessionsPerSecond: '1000',
        dataDir: tempFolder(),
        ...flags,
      },
      environment: {},
      file: null,
      structures: {},
    })

  /** Starts a worker whose membership the test controls. */
  function work(member: WorkerMembership, flags: Readonly<Record<string, string>> = {}) {
    const config = configWith(flags)
    const engine = composeEngine(config, { resolver, dial: mx, log })
    const worker = new ListWorker({
      database,
      log,
      random: systemRandom,
      engineFor: () => engine,
      egresses: engine.egresses,
      cluster: member,
      concurrency: config.concurrency,
      greylistDelayMs: null,
      wait: true,
      ledger: null,
      baseUrl: 'https://ev.test',
      timings: timings.worker,
    })
    onTestFinished(async () => {
      await worker.stop()
      await engine.close()
    })
    return worker
  }

  /**
   * Starts another worker, like `ev worker`; `dialled` has its connections, which go to `own` if
   * given.
   */
  async function join(
    flags: Readonly<Record<string, string>> = {},
    own: Mail['script'] | null = null,
  ) {
    const ownMx = own === null ? mx : scriptedMx(own)
    const config = configWith(flags)
    const dialled: string[] = []
    const dial = {
      ...ownMx,
      connect(to: Parameters<typeof mx.connect>[0], signal?: AbortSignal) {
        dialled.push(to.host)
        return ownMx.connect(to, signal)
      },
    }
    const services = await composeWork(
      { ...config, work: true },
      { resolver, dial, log },
      {
        databaseUrl: url,
        baseUrl: 'https://ev.test',
        version: '0.0.0',
        timings,
        role: 'worker' as const,
        lists: openLists(listFiles(config)),
        openDatabase: openServer,
      },
    )
    joined.push(services)
    let closed: Promise<void> | null = null
    const close = () => {
      closed ??= services.close()
      return closed
    }
    onTestFinished(close)
    return { ...services, mx: ownMx, dialled, close }
  }

  /** Submits a job with these texts for the account. */
  async function submit(id: string, texts: readonly string[]): Promise<Job> {
    const owner = { accountId: 'acc_1', keyId: 'key_1', name: null, sandbox: false }
    return queued({ id, owner: { ...owner, type: 'batch' } }, texts)
  }

  async function queued(job: Pick<NewJob, 'id' | 'owner'>, texts: readonly string[]): Promise<Job> {
    await createJob(database, { ...job, sourceKey: job.id, source: '{}' })
    const items = texts.map((text, n) => ({ position: n + 1, ...parseRow(text, n + 1) }))
    await addItems(database, job.id, items)
    return write(database, trx => queueJobIn(trx, job.id, { now: systemClock.now() }))
  }

  /** Waits until the job meets a condition. */
  async function until(id: string, condition: (job: Job) => boolean): Promise<Job> {
    let job = await readJob(database, id)
    await waitUntil(async () => {
      job = await readJob(database, id)
      return condition(job)
    })
    return job
  }

  /** Waits until each worker knows this number of egresses. */
  async function known(egresses: number): Promise<void> {
    await waitUntil(() => joined.every(({ engine }) => engine.egressPool.all.length === egresses))
  }

  return {
    url,
    database,
    mx,
    loggedErrors,
    join,
    work,
    submit,
    until,
    known,
    /** Submits a job without an account, as `ev bulk` does. */
    submitAlone: (id: string, texts: readonly string[]) => queued({ id }, texts),
    finished: (id: string) => until(id, job => job.finished_at !== null),
    results: (id: string) => resultsOf(database, id),
    reasons: async (id: string) =>
      (await resultsOf(database, id)).map(result => result?.verdict.reason ?? null),
    /** The probed recipients with repetitions, without random ones. */
    asked: (texts: readonly string[]) => {
      const real = new Set(texts)
      return mx.lines().flatMap(line => {
        const to = /^RCPT TO:<(.*)>$/.exec(line)?.[1]
        return to !== undefined && real.has(to) ? [to] : []
      })
    },
    events: () => database.db.selectFrom('event').select(['kind', 'body']).execute(),
    usage: () => database.db.selectFrom('usage').select(['class', 'verifications']).execute(),
    history: async () =>
      (await database.db.selectFrom('verification').select('email').execute()).map(
        ({ email }) => email,
      ),
  }
}

async function createOwner(database: Database): Promise<void> {
  const now = systemClock.now()
  const secret = newSecret(systemRandom, 'live')
  await write(database, async trx => {
    await createAccount(trx, { id: 'acc_1', name: 'test', plan: 'enterprise', now })
    await createKey(trx, {
      id: 'key_1',
      accountId: 'acc_1',
      name: 'test',
      secret,
      scopes: ['*'],
      now,
      allowedIps: [],
      allowedDomains: [],
      rateLimitPerMinute: null,
      expiresAt: null,
    })
    await createWebhook(trx, {
      id: 'wh_1',
      accountId: 'acc_1',
      url: 'https://hook.test/',
      active: true,
      events: ['batch.completed'],
      description: null,
      secret: 'sealed',
      secretHint: '',
      createdAt: now,
    })
  })
}

async function resultsOf(database: Database, jobId: string): Promise<(Result | null)[]> {
  const rows = await resultPage(database, { jobId, after: 0, max: 100_000 })
  return rows.map(({ result }) => (result === null ? null : decodeResult(result)))
}
