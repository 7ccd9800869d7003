import { expect, test } from 'vitest'
import { updateAccount } from '../../../src/accounts/account-store.ts'
import { reserveCredits } from '../../../src/accounts/credits/credit-store.ts'
import { createUsageLedger } from '../../../src/accounts/credits/usage-ledger.ts'
import { mergePlans, periodStart } from '../../../src/accounts/plan.ts'
import { type Database, write } from '../../../src/db/database.ts'
import { cancelJob, deleteJob } from '../../../src/jobs/change-job.ts'
import { deleteJobsBefore, jobsFinishedBefore } from '../../../src/jobs/delete-job.ts'
import { deleteLoadingJobs } from '../../../src/jobs/import/item-import.ts'
import { parseNotify, parseOrigin, readJob } from '../../../src/jobs/job-store.ts'
import {
  DEFAULT_SCHEDULE_TIMINGS,
  type RunDeps,
  runDueSchedules,
  startSchedules,
} from '../../../src/jobs/schedules/run-schedules.ts'
import {
  runStatus,
  type Schedule,
  type ScheduleOptions,
} from '../../../src/jobs/schedules/schedule.ts'
import {
  createSchedule,
  deleteSchedule,
  getSchedule,
  updateSchedule,
} from '../../../src/jobs/schedules/schedules.ts'
import { DAY, HOUR } from '../../../src/platform/clock.ts'
import { silentLog } from '../../../src/platform/log.ts'
import { addAccount } from '../../support/account-rows.ts'
import { fakeClock } from '../../support/clock.ts'
import { tempDatabase, tempFolder } from '../../support/database.ts'
import { type Seed, seedJob } from '../../support/job-rows.ts'
import { countedRandom } from '../../support/random.ts'
import { verifyQueued } from '../../support/reverified-job.ts'
import { idleWorker } from '../../support/service.ts'
import { waitUntil } from '../../support/wait.ts'

const TEXTS = ['valid@a.example', 'timeout@a.example', 'invalid@a.example']
const { claimMs: CLAIM_MS, pollMs: POLL_MS } = DEFAULT_SCHEDULE_TIMINGS
const RUNNING = new AbortController().signal
const OPTIONS: ScheduleOptions = {
  everyDays: 30,
  classes: null,
  olderThanDays: null,
  notify: false,
}

/** A list with a schedule of 30 days; `run` runs what is due, as one of several processes. */
async function createServices(seed: Partial<Seed> = {}, options: Partial<ScheduleOptions> = {}) {
  const clock = fakeClock()
  const database = await tempDatabase({ clock })
  await addAccount(database, 'acc_1')
  const random = countedRandom()
  const plans = mergePlans({})
  const base = { database, clock, random, log: silentLog, plans }
  const worker = idleWorker()
  const ledger = createUsageLedger(base)
  const deps: RunDeps = { ...base, ledger, worker, disk: async () => ({ isLow: false }) }
  const job = await seedJob(database, { texts: TEXTS, ...seed })
  const { id } = await createSchedule(deps, { job, keyId: 'key_2', ...OPTIONS, ...options })
  return {
    clock,
    database,
    deps,
    worker,
    id,
    job,
    ledger,
    run: (changed: Partial<RunDeps> = {}) => runDueSchedules({ ...deps, ...changed }, RUNNING),
    schedule: () => getSchedule(database.db, { id, accountId: 'acc_1' }),
  }
}

const jobIds = async ({ db }: Database) =>
  (await db.selectFrom('job').select('id').orderBy('created_at').orderBy('id').execute()).map(
    ({ id }) => id,
  )

const outcome = (schedule: Schedule) => [runStatus(schedule), schedule.last_error]

test('a due schedule creates a job, and is due again after its interval', async () => {
  const { clock, database, run, schedule, worker, id } = await createServices()
  const start = clock.now()
  await clock.advance(30 * DAY - 1)
  await run()
  expect(worker.taken).toEqual([])
  await clock.advance(1)
  await run()
  await run()
  expect(worker.taken).toHaveLength(1)
  const [created = ''] = worker.taken
  const job = await readJob(database, created)
  expect(job).toMatchObject({ state: 'queued', total: 3, done: 0, key_id: 'key_2' })
  expect(parseOrigin(job)).toEqual({ previousJobId: 'job_a', scheduleId: id })
  expect(await schedule()).toMatchObject({
    job_id: 'job_a',
    latest_job_id: created,
    claimed_until: null,
    last_error: null,
    last_run_at: start + 30 * DAY,
    next_run_at: start + 60 * DAY,
  })
})

test('each run verifies the results of the run before, by the conditions', async () => {
  const conditions = { classes: ['unknown'], olderThanDays: 45 } as const
  const { clock, database, run, worker } = await createServices({}, conditions)
  await clock.advance(30 * DAY)
  await run()
  await verifyQueued(database, worker.taken[0] ?? '')
  await clock.advance(30 * DAY)
  await run()
  const [first = '', second = ''] = worker.taken
  expect(parseOrigin(await readJob(database, second)).previousJobId).toBe(first)
  const rows = await database.db
    .selectFrom('item')
    .select(['job_id', 'position'])
    .where('previous', 'is not', null)
    .orderBy('position')
    .execute()
  const verified = (jobId: string) =>
    rows.filter(({ job_id }) => job_id === jobId).map(({ position }) => Number(position))
  // The unknown row; then also those that are older than 45 days.
  expect(verified(first)).toEqual([2])
  expect(verified(second)).toEqual([1, 2, 3])
})

test('of two processes, one creates the job', async () => {
  const { clock, database, run } = await createServices()
  await clock.advance(30 * DAY)
  await Promise.all([run(), run()])
  expect(await jobIds(database)).toHaveLength(2)
})

test('after a crash of the process that prepares a run, another process repeats it', async () => {
  const { clock, database, run, worker, schedule } = await createServices()
  await clock.advance(30 * DAY)
  const hung = Promise.withResolvers<void>()
  const crashed = run({ priority: { yieldToRequests: () => hung.promise } })
  await waitUntil(async () => (await jobIds(database)).length === 2)
  await run()
  expect(worker.taken).toEqual([])
  await clock.advance(CLAIM_MS)
  await run()
  expect(worker.taken).toHaveLength(1)
  // The first process was not dead, only slow: it creates nothing.
  hung.resolve()
  await crashed
  expect(worker.taken).toHaveLength(1)
  expect(await jobIds(database)).toEqual(['job_a', worker.taken[0]])
  expect(await schedule()).toMatchObject({ latest_job_id: worker.taken[0] })
})

test('the rows of a run that crashed are deleted', async () => {
  const { clock, database, run, worker } = await createServices()
  await clock.advance(30 * DAY)
  void run({ priority: { yieldToRequests: () => new Promise(() => {}) } })
  await waitUntil(async () => (await jobIds(database)).length === 2)
  await clock.advance(2 * HOUR)
  expect(await deleteLoadingJobs(database)).toBe(1)
  await run()
  expect(await jobIds(database)).toEqual(['job_a', worker.taken[0]])
})

test('a service that was down for several intervals runs a schedule once', async () => {
  const { clock, run, worker, schedule } = await createServices()
  await clock.advance(100 * DAY)
  const now = clock.now()
  await run()
  await run()
  expect(worker.taken).toHaveLength(1)
  expect(await schedule()).toMatchObject({ next_run_at: now + 30 * DAY })
})

test.each([
  ['back by years', -3_650 * DAY],
  ['ahead by years', 3_650 * DAY],
])('a schedule runs after its interval although the clock was set %s', async (_, jumpMs) => {
  const { clock, run, worker } = await createServices()
  clock.jump(jumpMs)
  await run()
  expect(worker.taken).toEqual([])
  await clock.advance(30 * DAY)
  await run()
  expect(worker.taken).toHaveLength(1)
})

test('a run is skipped while the previous one is not finished', async () => {
  const { clock, database, run, worker, schedule } = await createServices()
  const start = clock.now()
  await clock.advance(30 * DAY)
  await run()
  await clock.advance(30 * DAY)
  await run()
  expect(worker.taken).toHaveLength(1)
  expect(outcome(await schedule())).toEqual(['skipped', 'previous_run_unfinished'])
  expect(await schedule()).toMatchObject({ next_run_at: start + 90 * DAY })
  await verifyQueued(database, worker.taken[0] ?? '')
  await clock.advance(30 * DAY)
  await run()
  expect(worker.taken).toHaveLength(2)
  expect(outcome(await schedule())).toEqual(['started', null])
})

test('a run without a row to verify is skipped', async () => {
  const { clock, database, run, schedule } = await createServices({ texts: ['not an address'] })
  await clock.advance(30 * DAY)
  await run()
  expect(outcome(await schedule())).toEqual(['skipped', 'nothing_to_verify'])
  expect(await jobIds(database)).toEqual(['job_a'])
})

test('a run without enough credits fails, and the schedule stays active', async () => {
  const { clock, database, run, schedule, worker } = await createServices()
  await clock.advance(30 * DAY)
  const period = periodStart(clock.now())
  const most = { accountId: 'acc_1', period, amount: 98, limit: null }
  await write(database, trx => reserveCredits(trx, most))
  await run()
  expect(outcome(await schedule())).toEqual(['failed', 'credits_exceeded'])
  expect(await jobIds(database)).toEqual(['job_a'])
  await clock.advance(30 * DAY)
  await run()
  expect(worker.taken).toHaveLength(1)
})

test('a run that was cancelled is continued by the next one', async () => {
  const { clock, database, run, worker } = await createServices()
  await clock.advance(30 * DAY)
  await run()
  await cancelJob({ database }, await readJob(database, worker.taken[0] ?? ''))
  await clock.advance(30 * DAY)
  await run()
  expect(await readJob(database, worker.taken[1] ?? '')).toMatchObject({ total: 3, done: 0 })
})

test('a schedule whose results are deleted is paused', async () => {
  const { clock, database, deps, run, schedule, id, job } = await createServices()
  await deleteJob({ database, settings: { dataDir: '' } }, job)
  expect(await schedule()).toMatchObject({ next_run_at: null, last_error: 'results_deleted' })
  await clock.advance(100 * DAY)
  await run()
  expect(await jobIds(database)).toEqual([])
  const target = { id, accountId: 'acc_1' }
  await expect(updateSchedule(deps, target, { active: true })).rejects.toMatchObject({
    code: 'schedule_without_results',
  })
})

test('retention keeps the results that an active schedule verifies again', async () => {
  const { clock, database, deps, run, worker, id } = await createServices()
  const expire = () => deleteJobsBefore(database, tempFolder(), clock.now() - 10 * DAY, clock.now())
  await clock.advance(30 * DAY)
  expect(await expire()).toEqual([])
  await run()
  const [created = ''] = worker.taken
  await verifyQueued(database, created)
  expect((await expire()).map(job => job.id)).toEqual(['job_a'])
  await clock.advance(20 * DAY)
  expect(await expire()).toEqual([])
  const latest = clock.now() + 1
  expect(await jobsFinishedBefore(database, latest, latest, true)).toHaveLength(1)
  await updateSchedule(deps, { id, accountId: 'acc_1' }, { active: false })
  expect((await expire()).map(job => job.id)).toEqual([created])
})

test('a schedule that is changed or deleted while a run is prepared does not run', async () => {
  const { clock, database, deps, run, worker, id } = await createServices()
  const target = { id, accountId: 'acc_1' }
  await clock.advance(30 * DAY)
  await run({
    priority: {
      yieldToRequests: async () => void (await updateSchedule(deps, target, { active: false })),
    },
  })
  expect(await jobIds(database)).toEqual(['job_a'])
  await updateSchedule(deps, target, { active: true })
  await clock.advance(30 * DAY)
  await run({ priority: { yieldToRequests: () => deleteSchedule(deps, target) } })
  expect(await jobIds(database)).toEqual(['job_a'])
  expect(worker.taken).toEqual([])
})

test('a run is not prepared while the disk is almost full', async () => {
  const { clock, run, worker } = await createServices()
  await clock.advance(30 * DAY)
  await run({ disk: async () => ({ isLow: true }) })
  expect(worker.taken).toEqual([])
  await run()
  expect(worker.taken).toHaveLength(1)
})

test('a stop ends the preparation of a run, which the next process repeats', async () => {
  // More than one chunk of rows on both databases.
  const texts = Array.from({ length: 5_001 }, (_, n) => `valid${n}@a.example`)
  const { clock, database, deps, run, worker } = await createServices({ texts, sandbox: true })
  await clock.advance(30 * DAY)
  const stopping = new AbortController()
  const yieldToRequests = async () => stopping.abort()
  await runDueSchedules({ ...deps, priority: { yieldToRequests } }, stopping.signal)
  expect(await jobIds(database)).toEqual(['job_a'])
  await run()
  expect(await jobIds(database)).toEqual(['job_a', worker.taken[0]])
})

test('a simulated list is simulated again, and a mail is requested at its end', async () => {
  const { clock, database, run, worker } = await createServices({ sandbox: true }, { notify: true })
  await write(database, trx => updateAccount(trx, 'acc_1', { email: 'owner@shop.example' }))
  await clock.advance(30 * DAY)
  await run()
  const job = await readJob(database, worker.taken[0] ?? '')
  expect(job).toMatchObject({ sandbox: 1, held: 0 })
  expect(parseNotify(job)).toBe(true)
})

test('the service polls for due schedules', async () => {
  const { clock, deps, worker } = await createServices()
  await clock.advance(30 * DAY - POLL_MS)
  const loop = startSchedules(deps)
  await waitUntil(() => clock.pending > 0)
  expect(worker.taken).toEqual([])
  await clock.advance(POLL_MS)
  await waitUntil(() => worker.taken.length === 1)
  await loop.stop()
})

test('an account has at most 100 schedules', async () => {
  const { deps, job } = await createServices()
  for (let n = 1; n < 100; n++) await createSchedule(deps, { job, keyId: 'key_1', ...OPTIONS })
  await expect(createSchedule(deps, { job, keyId: 'key_1', ...OPTIONS })).rejects.toMatchObject({
    code: 'schedule_limit_reached',
    facts: { count: 100 },
  })
})
