import { expect, test } from 'vitest'
import { readCredit, reserveCredits } from '../../../src/accounts/credits/credit-store.ts'
import { createUsageLedger } from '../../../src/accounts/credits/usage-ledger.ts'
import { findPlan, mergePlans, type Plan, periodStart } from '../../../src/accounts/plan.ts'
import { type Database, write } from '../../../src/db/database.ts'
import { cancelJob, deleteJob } from '../../../src/jobs/change-job.ts'
import { type Job, parseJobOptions, parseOrigin, readJob } from '../../../src/jobs/job-store.ts'
import { resultPage } from '../../../src/jobs/results/result-store.ts'
import { countChanges, findChanges } from '../../../src/jobs/reverify/changes.ts'
import { inheritOptions, reverifyJob } from '../../../src/jobs/reverify/reverify-job.ts'
import type { Selection } from '../../../src/jobs/reverify/selection.ts'
import { DAY } from '../../../src/platform/clock.ts'
import { silentLog } from '../../../src/platform/log.ts'
import { addAccount } from '../../support/account-rows.ts'
import { type FakeClock, fakeClock } from '../../support/clock.ts'
import { tempDatabase } from '../../support/database.ts'
import { seedJob } from '../../support/job-rows.ts'
import { countedRandom } from '../../support/random.ts'
import { verifyQueued } from '../../support/reverified-job.ts'
import { idleWorker } from '../../support/service.ts'

const PLANS = mergePlans({})
const FREE = findPlan(PLANS, 'free')

const VALID = 'valid@a.example'
const INVALID = 'invalid@a.example'
const RISKY = 'risky@a.example'
const TIMEOUT = 'timeout@a.example'
const FAILING = 'error-server@a.example'

/** Rows 3 and 6 repeat row 2; row 5 is not an address. */
const TEXTS = [VALID, TIMEOUT, TIMEOUT, INVALID, 'not an address', 'timeout@A.example', FAILING]

async function createServices(clock: FakeClock = fakeClock()) {
  const database = await tempDatabase({ clock })
  await addAccount(database, 'acc_1')
  const random = countedRandom()
  const deps = { database, clock, random, log: silentLog, plans: PLANS }
  return { ...deps, ledger: createUsageLedger(deps), worker: idleWorker() }
}

type Services = Awaited<ReturnType<typeof createServices>>

function reverify(
  services: Parameters<typeof reverifyJob>[0],
  job: Job,
  selection: Selection = {},
  plan: Plan = FREE,
): Promise<Job> {
  const options = inheritOptions(job)
  return reverifyJob(services, { job, plan, keyId: 'key_1', selection, options })
}

const credit = ({ database, clock }: Services) =>
  readCredit(database, 'acc_1', periodStart(clock.now()))

const statesOf = async ({ db }: Database, jobId: string) =>
  (
    await db
      .selectFrom('item')
      .select('state')
      .where('job_id', '=', jobId)
      .orderBy('position')
      .execute()
  ).map(({ state }) => state)

const jobIds = async ({ db }: Database) =>
  (await db.selectFrom('job').select('id').orderBy('id').execute()).map(({ id }) => id)

test('a new job has all rows, verifies the selected ones, and keeps the other results', async () => {
  const services = await createServices()
  const { database, worker } = services
  const source = { dialect: { delimiter: ';' }, file_name: 'a.csv', metadata: { customer: '42' } }
  const cells = TEXTS.map((text, n) => [`${n}`, text])
  const job = await seedJob(database, { texts: TEXTS, cells, source, type: 'file', name: 'March' })
  const created = await reverify(services, job, { classes: ['unknown'] })
  expect(created).toMatchObject({
    state: 'queued',
    account_id: 'acc_1',
    key_id: 'key_1',
    type: 'file',
    name: 'March',
    total: 7,
    duplicates: 2,
    malformed: 0,
    done: 3,
    held: 2,
    deliverable: 1,
    undeliverable: 2,
    unknown: 0,
    failed: 0,
  })
  expect(JSON.parse(created.source)).toEqual({
    ...source,
    force_refresh: true,
    previous_job_id: 'job_a',
  })
  expect(await statesOf(database, created.id)).toEqual([
    ...['done', 'queued', 'same', 'done', 'done', 'same', 'queued'],
  ])
  expect(worker.taken).toEqual([created.id])
  const [before, after] = await Promise.all(
    ['job_a', created.id].map(jobId => resultPage(database, { jobId, after: 0, max: 10 })),
  )
  const head = (rows: typeof before) =>
    rows?.map(({ position, text, dedupeKey, cells }) => ({ position, text, dedupeKey, cells }))
  expect(head(after)).toEqual(head(before))
  expect(after?.[0]?.result).toEqual(before?.[0]?.result)
  expect(await readJob(database, 'job_a')).toEqual(job)
})

test('the job is completed by the results of the selected rows', async () => {
  const services = await createServices()
  const { database, ledger } = services
  const job = await seedJob(database, { texts: TEXTS })
  const { id } = await reverify(services, job, { classes: ['unknown'] })
  expect(await verifyQueued(database, id, { as: { [TIMEOUT]: VALID }, ledger })).toMatchObject({
    state: 'completed',
    total: 7,
    done: 7,
    held: 0,
    deliverable: 4,
    undeliverable: 2,
    unknown: 1,
    failed: 1,
  })
  expect(await credit(services)).toMatchObject({ held: 0, used: 1 })
})

test('changes are counted over all rows, and listed in the order of the list', async () => {
  const clock = fakeClock()
  const services = await createServices(clock)
  const { database } = services
  const job = await seedJob(database, { texts: TEXTS })
  const checkedBefore = clock.now()
  await clock.advance(DAY)
  const { id } = await reverify(services, job)
  expect(await countChanges(database, id)).toEqual([])
  await verifyQueued(database, id, { as: { [TIMEOUT]: VALID, [VALID]: RISKY } })
  const expected = [
    { from: 'deliverable', to: 'risky', count: 1 },
    { from: 'undeliverable', to: 'undeliverable', count: 1 },
    { from: 'unknown', to: 'deliverable', count: 3 },
    { from: 'unknown', to: 'unknown', count: 1 },
  ]
  expect(await countChanges(database, id)).toEqual(expected)
  const list = async (options: object) => {
    const o = { jobId: id, after: 0, max: 10, ...options }
    const { changes, next } = await findChanges(database, o)
    return { rows: changes.map(({ position }) => position), next }
  }
  expect(await list({})).toEqual({ rows: [1, 2, 3, 6], next: null })
  expect(await list({ max: 2 })).toEqual({ rows: [1, 2], next: 2 })
  expect(await list({ max: 2, after: 2 })).toEqual({ rows: [3, 6], next: null })
  expect(await list({ from: ['unknown'], max: 1 })).toEqual({ rows: [2], next: 2 })
  expect(await list({ to: ['risky'] })).toEqual({ rows: [1], next: null })
  expect(await list({ from: ['risky'] })).toEqual({ rows: [], next: null })
  expect(await list({ scannedMax: 2 })).toEqual({ rows: [1, 2], next: 2 })
  // The results before are stored with the new job.
  await deleteJob({ database, settings: { dataDir: '' } }, job)
  expect(await countChanges(database, id)).toEqual(expected)
  const { changes } = await findChanges(database, { jobId: id, after: 1, max: 1 })
  expect(changes).toEqual([
    {
      position: 2,
      text: TIMEOUT,
      before: { class: 'unknown', reason: 'timeout', checkedAt: checkedBefore },
      after: { class: 'deliverable', reason: 'accepted_email', checkedAt: checkedBefore + DAY },
    },
  ])
})

test('rows are selected by class or by age', async () => {
  const clock = fakeClock()
  const services = await createServices(clock)
  const { database } = services
  const job = await seedJob(database, { texts: [VALID, TIMEOUT, INVALID] })
  const [old, later] = [clock.now(), clock.now() + 1]
  const select = async (selection: Selection) => {
    const { id } = await reverify(services, job, selection)
    const states = await statesOf(database, id)
    return states.flatMap((state, n) => (state === 'queued' ? [n + 1] : []))
  }
  expect(await select({})).toEqual([1, 2, 3])
  expect(await select({ classes: ['unknown', 'undeliverable'] })).toEqual([2, 3])
  expect(await select({ checkedBefore: later })).toEqual([1, 2, 3])
  expect(await select({ classes: ['unknown'], checkedBefore: old })).toEqual([2])
  await clock.advance(DAY)
  const { id } = await reverify(services, job, { classes: ['unknown'] })
  const second = await verifyQueued(database, id)
  const third = await reverify(services, second, { checkedBefore: later })
  expect(await statesOf(database, third.id)).toEqual(['queued', 'done', 'queued'])
  expect(parseOrigin(third)).toEqual({ previousJobId: id, scheduleId: null })
})

test('rows without a result are verified, and erased addresses are not', async () => {
  const services = await createServices()
  const { database } = services
  const seeded = await seedJob(database, { texts: [VALID, INVALID, TIMEOUT, 'no'], done: 2 })
  const { job } = await cancelJob({ database }, seeded)
  await write(database, trx =>
    trx
      .updateTable('item')
      .set({ text: '', result: 'null' })
      .where('job_id', '=', 'job_a')
      .where('position', '=', 2)
      .execute(),
  )
  const created = await reverify(services, job, { classes: ['undeliverable'] })
  expect(await statesOf(database, created.id)).toEqual(['done', 'done', 'queued', 'queued'])
  expect(created).toMatchObject({ done: 2, deliverable: 1, undeliverable: 1, held: 1 })
  await verifyQueued(database, created.id)
  expect(await countChanges(database, created.id)).toEqual([])
})

test('a list without a row to verify is refused, and nothing is left', async () => {
  const services = await createServices()
  const { database, worker } = services
  const job = await seedJob(database, { texts: [VALID, 'no'] })
  await expect(reverify(services, job, { classes: ['unknown'] })).rejects.toMatchObject({
    code: 'no_row_selected',
  })
  expect(await jobIds(database)).toEqual(['job_a'])
  expect(worker.taken).toEqual([])
})

test.each([
  ['a queued list', { done: 0 }, 'job_not_reverifiable'],
  ['a list in process', { done: 1 }, 'job_not_reverifiable'],
  ['a single address', { type: 'single' as const }, 'job_not_list'],
])('%s cannot be verified again', async (_, seed, code) => {
  const services = await createServices()
  const job = await seedJob(services.database, { texts: [VALID, TIMEOUT], ...seed })
  await expect(reverify(services, job)).rejects.toMatchObject({ code })
})

test('a list that needs more credits than are left is refused', async () => {
  const services = await createServices()
  const { database, clock } = services
  const job = await seedJob(database, { texts: TEXTS })
  const period = periodStart(clock.now())
  const most = { accountId: 'acc_1', period, amount: 97, limit: null }
  await write(database, trx => reserveCredits(trx, most))
  await expect(reverify(services, job)).rejects.toMatchObject({
    code: 'credits_exceeded',
    facts: { needed: 4, left: 3 },
  })
  expect(await jobIds(database)).toEqual(['job_a'])
  expect(await credit(services)).toMatchObject({ held: 97 })
  // The two unknown addresses fit.
  expect(await reverify(services, job, { classes: ['unknown'] })).toMatchObject({ held: 2 })
})

test('the limits of the plan count the new list with all its rows', async () => {
  const services = await createServices()
  const { database } = services
  const job = await seedJob(database, { texts: [VALID, TIMEOUT] })
  const full: Plan = { ...FREE, storedRows: 3 }
  await expect(reverify(services, job, { classes: ['unknown'] }, full)).rejects.toMatchObject({
    code: 'stored_rows_exceeded',
    facts: { storedRows: 2, rows: 2, max: 3 },
  })
  await seedJob(database, { id: 'job_b', texts: [VALID], done: 0 })
  const busy: Plan = { ...FREE, concurrentJobs: 1 }
  await expect(reverify(services, job, {}, busy)).rejects.toMatchObject({
    code: 'concurrent_jobs_exceeded',
  })
  expect(await jobIds(database)).toEqual(['job_a', 'job_b'])
})

test('nothing is left of a job whose transaction fails', async () => {
  const services = await createServices()
  const { database } = services
  const job = await seedJob(database, { texts: TEXTS })
  const input = { job, plan: FREE, keyId: 'key_1', selection: {}, options: inheritOptions(job) }
  const failing = async () => {
    throw new Error('no room for the answer')
  }
  await expect(reverifyJob(services, input, failing)).rejects.toThrow('no room')
  expect(await jobIds(database)).toEqual(['job_a'])
  expect(await credit(services)).toMatchObject({ held: 0 })
})

test('a list that is resumed or deleted while it is copied is refused', async () => {
  const services = await createServices()
  const { database } = services
  const job = await seedJob(database, { texts: TEXTS })
  await expect(reverify(services, { ...job, finished_at: 1 })).rejects.toMatchObject({
    code: 'job_not_reverifiable',
  })
  const deleteCopied = () => deleteJob({ database, settings: { dataDir: '' } }, job)
  const priority = { yieldToRequests: deleteCopied }
  await expect(reverify({ ...services, priority }, job)).rejects.toMatchObject({
    code: 'job_not_found',
    facts: { id: 'job_a' },
  })
  expect(await jobIds(database)).toEqual([])
})

test('options are inherited, and cached results are not used', async () => {
  const services = await createServices()
  const { database } = services
  const source = { check_smtp: false, webhook_id: 'wh_1', notify: true, metadata: { a: 'b' } }
  const job = await seedJob(database, { texts: TEXTS, source, sandbox: true })
  const created = await reverify(services, job)
  expect(created).toMatchObject({ sandbox: 1, held: 0 })
  expect(created.id).toMatch(/^job_sbx_/)
  expect(parseJobOptions(created)).toEqual({ checkSmtp: false, forceRefresh: true })
  expect(JSON.parse(created.source)).toEqual({
    check_smtp: false,
    force_refresh: true,
    metadata: { a: 'b' },
    previous_job_id: 'job_a',
  })
})
