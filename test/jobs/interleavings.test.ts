import { expect, test } from 'vitest'
import { createAccount } from '../../src/accounts/account-store.ts'
import { createUsageLedger } from '../../src/accounts/credits/usage-ledger.ts'
import { PLANS, type Plan } from '../../src/accounts/plan.ts'
import { composeEngine } from '../../src/compose/engine.ts'
import { openDatabase, write } from '../../src/db/database.ts'
import { deleteJob } from '../../src/jobs/delete-job.ts'
import { deleteLoadingJobs } from '../../src/jobs/import/item-import.ts'
import { type Loaded, loadJob, queueLoaded } from '../../src/jobs/import/load-job.ts'
import { releaseOrphanedReservations } from '../../src/jobs/job-credits.ts'
import { openJobs } from '../../src/jobs/job-list.ts'
import { cancelJob } from '../../src/jobs/job-state.ts'
import type { Job } from '../../src/jobs/job-store.ts'
import { ListWorker } from '../../src/jobs/list/list-worker.ts'
import { resultPage } from '../../src/jobs/results/result-store.ts'
import { silentLog } from '../../src/platform/log.ts'
import { toRecipients } from '../support/engine.ts'
import { createJobDeps } from '../support/job.ts'
import { fc, runs } from '../support/property.ts'
import { drainEventLoop } from '../support/wait.ts'

const ACCOUNTS = ['acc_a', 'acc_b'] as const
const ADDRESSES = ['ann@a.test', 'bob@a.test', 'gone@a.test', 'ann@b.test', 'gone@b.test']
const TEXTS = [...ADDRESSES, 'grey@a.test', 'Ann@A.test', 'nonsense', '']

const account = fc.constantFrom(...ACCOUNTS)
const which = fc.nat({ max: 5 })
const steps = fc.array(
  fc.oneof(
    fc.record({
      kind: fc.constant('submit' as const),
      account,
      texts: fc.array(fc.constantFrom(...TEXTS), { minLength: 1, maxLength: 12 }),
      deduplicate: fc.boolean(),
    }),
    fc.record({ kind: fc.constantFrom('cancel' as const, 'delete' as const), which }),
    fc.record({ kind: fc.constant('load' as const), account }),
    fc.record({ kind: fc.constant('single' as const), account, answered: fc.boolean() }),
    fc.record({
      kind: fc.constant('pass' as const),
      ms: fc.constantFrom(0, 50, 100, 400, 2_000, 400_000, 50_000_000),
    }),
    fc.constant({ kind: 'crash' as const }),
  ),
  { maxLength: 14 },
)

/** The crash rejects the write of a deferred row. */
const CRASH_WITH_DEFERRAL: Step[] = [
  { kind: 'submit', account: 'acc_a', texts: ['grey@a.test'], deduplicate: false },
  { kind: 'pass', ms: 50 },
  { kind: 'crash' },
]

test('the ledger is correct for any order of submit, cancel, delete, finish and crash', async () => {
  await fc.assert(
    fc.asyncProperty(steps, async run => {
      const service = await startService()
      for (const step of run) await service.apply(step)
      await service.end()
      await service.check()
    }),
    { numRuns: runs(25), examples: [[CRASH_WITH_DEFERRAL]] },
  )
}, 120_000)

type Step = NonNullable<Parameters<Parameters<typeof steps.map>[0]>[0][number]>

/** Starts a service without HTTP that can crash and restart. */
async function startService() {
  const script = toRecipients(to => {
    if (to.startsWith('grey')) return '451 4.7.1 Come back later'
    return /^(ann|bob)@/.test(to) ? '250 2.1.5 Ok' : '550 5.1.1 No such user'
  })
  const jobDeps = await createJobDeps({ script })
  const { clock, file, doors } = jobDeps
  const { random } = doors
  const config = jobDeps.configWith()
  // Enough for one or two lists, so that some are rejected.
  const plan: Plan = { ...(PLANS[0] as Plan), name: 'few', creditsPerDay: 9 }
  const plans = new Map([[plan.name, plan]])
  for (const id of ACCOUNTS) {
    await write(jobDeps.database, trx =>
      createAccount(trx, { id, name: id, plan: plan.name, now: 0 }),
    )
    await subscribe(jobDeps.database, id)
  }
  await jobDeps.database.close()

  const jobs: string[] = []
  const deleted = new Set<string>()
  let services = await start()

  /** Continues the jobs of the previous process as `ev serve` does. */
  async function start() {
    const database = await openDatabase(`sqlite:${file}`, clock)
    const ledger = createUsageLedger({ database, clock, random, log: silentLog, plans })
    const engine = composeEngine(config, doors)
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
    })
    await deleteLoadingJobs(database)
    await write(database, releaseOrphanedReservations)
    for (const { id } of await openJobs(database)) worker.take(id)
    return { database, ledger, engine, worker }
  }

  async function load(accountId: string, texts: readonly string[], deduplicate = true) {
    const submission = {
      accountId,
      keyId: 'key',
      type: 'batch' as const,
      name: null,
      sandbox: false,
      source: '{}',
      deduplicate,
    }
    return loadJob(
      { database: services.database, random },
      submission,
      [texts.map(text => ({ text }))],
      9,
    )
  }

  async function submit({
    accountId,
    texts,
    deduplicate,
  }: {
    accountId: string
    texts: string[]
    deduplicate: boolean
  }) {
    const loaded = await load(accountId, texts, deduplicate)
    if (loaded === null) return
    const now = clock.now()
    const queued = await write(services.database, trx =>
      queueLoaded(trx, loaded as Loaded, { now, creditsPerDay: plan.creditsPerDay }),
    )
    if (!('job' in queued)) return deleteJob(services.database, loaded.jobId)
    jobs.push(loaded.jobId)
    services.worker.take(loaded.jobId)
  }

  async function cancelOrDelete(kind: 'cancel' | 'delete', jobId: string | undefined) {
    if (jobId === undefined || deleted.has(jobId)) return
    if (await cancelJob(services.database, jobId)) services.worker.drop(jobId)
    if (kind === 'cancel') return
    deleted.add(jobId)
    await deleteJob(services.database, jobId)
  }

  async function single(accountId: string, answered: boolean) {
    const { ledger, engine } = services
    const reservation = await ledger.reserve(accountId, plan, 1)
    if (!('amount' in reservation)) return
    if (!answered) return ledger.giveBack(accountId, reservation)
    const result = await engine.verify('nobody@nowhere.invalid', { checkSmtp: false })
    const settled = {
      accountId,
      keyId: 'key',
      source: 'single' as const,
      sandbox: false,
      reservation,
    }
    // After a crash before the commit no request is answered.
    ledger.settle({ ...settled, entry: { result } }).catch(() => {})
  }

  async function pass(ms: number) {
    const stepMs = Math.max(50, ms / 40)
    for (let passed = 0; passed < ms; passed += stepMs) {
      await clock.advance(stepMs)
      await drainEventLoop()
    }
  }

  /** Makes the database unavailable, so nothing that the service does later is stored. */
  async function crash() {
    const { database, worker, ledger, engine } = services
    await database.close()
    await jobDeps.database.close()
    const ends = [worker.stop(), ledger.stop(), engine.close()].map(end => end.catch(() => {}))
    services = await start()
    void Promise.all(ends)
  }

  const actions = {
    submit: (step: Step & { kind: 'submit' }) => submit({ ...step, accountId: step.account }),
    cancel: (step: Step & { kind: 'cancel' | 'delete' }) =>
      cancelOrDelete('cancel', jobs[step.which]),
    delete: (step: Step & { kind: 'cancel' | 'delete' }) =>
      cancelOrDelete('delete', jobs[step.which]),
    load: (step: Step & { kind: 'load' }) => load(step.account, ['ann@a.test', 'gone@a.test']),
    single: (step: Step & { kind: 'single' }) => single(step.account, step.answered),
    pass: (step: Step & { kind: 'pass' }) => pass(step.ms),
    crash,
  }

  return {
    apply: (step: Step) => actions[step.kind](step as never) as Promise<unknown>,
    async end() {
      for (let days = 0; (await openJobs(services.database)).length > 0; days++) {
        if (days > 20) throw new Error('a job does not finish')
        await pass(8_000_000)
      }
      await pass(2_000)
      await crash()
      await services.worker.stop()
    },
    async check() {
      const { db } = services.database
      const left = await db.selectFrom('job').selectAll().execute()
      expect(left.map(({ id }) => id).toSorted()).toEqual(
        jobs.filter(id => !deleted.has(id)).toSorted(),
      )
      const events = (await db.selectFrom('event').selectAll().execute()).filter(
        ({ kind }) => kind === 'batch.completed',
      )
      const announced = events.map(({ body }) => JSON.parse(body).data.job_id as string)
      expect(new Set(announced).size).toBe(announced.length)
      for (const job of left) {
        await checkRows(job, services.database)
        expect(announced.filter(id => id === job.id)).toHaveLength(
          job.state === 'completed' ? 1 : 0,
        )
      }
      const ids = new Set(left.map(({ id }) => id))
      const items = await db.selectFrom('item').select('job_id').distinct().execute()
      for (const { job_id } of items) expect(ids).toContain(job_id)
      await checkLedger(db)
      await services.engine.close()
      await services.database.close()
    },
  }
}

const subscribe = ({ db }: Awaited<ReturnType<typeof openDatabase>>, accountId: string) =>
  db
    .insertInto('webhook')
    .values({
      id: `wh_${accountId}`,
      account_id: accountId,
      url: 'https://hook.test/',
      active: 1,
      events: JSON.stringify(['batch.completed', 'batch.failed']),
      description: null,
      secret: '',
      secret_hint: '',
      created_at: 0,
      updated_at: 0,
    })
    .execute()

/** Each row of a completed job has one result, and the counts of the job match its rows. */
async function checkRows(job: Job, database: Awaited<ReturnType<typeof openDatabase>>) {
  expect(['completed', 'cancelled']).toContain(job.state)
  const rows = await resultPage(database, { jobId: job.id, after: 0, max: 1_000 })
  const done = rows.filter(({ result }) => result !== null)
  expect([rows.length, done.length, job.held]).toEqual([job.total, job.done, 0])
  if (job.state === 'completed') expect(job.done).toBe(job.total)
  for (const name of ['deliverable', 'risky', 'undeliverable', 'unknown'] as const) {
    expect(rows.filter(row => row.class === name)).toHaveLength(job[name])
  }
}

/** No credits are reserved any more, and each definite answer in the history was charged once. */
async function checkLedger(db: Awaited<ReturnType<typeof openDatabase>>['db']) {
  for (const accountId of ACCOUNTS) {
    const credits = await db
      .selectFrom('credit')
      .selectAll()
      .where('account_id', '=', accountId)
      .execute()
    const history = await db
      .selectFrom('verification')
      .selectAll()
      .where('account_id', '=', accountId)
      .execute()
    const paid = history.filter(
      one => one.cached === 0 && one.class !== 'unknown' && one.reason !== 'invalid_email',
    )
    expect(credits.reduce((sum, { used }) => sum + used, 0)).toBe(paid.length)
    for (const { held, used } of credits) {
      expect(held).toBe(0)
      expect(used).toBeLessThanOrEqual(9)
    }
  }
}
