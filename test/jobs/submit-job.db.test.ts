import { expect, test } from 'vitest'
import { reserveCredits } from '../../src/accounts/credits/credit-store.ts'
import { createUsageLedger } from '../../src/accounts/credits/usage-ledger.ts'
import { findPlan, mergePlans, type Plan, periodStart } from '../../src/accounts/plan.ts'
import { write } from '../../src/db/database.ts'
import { getAccountLoad } from '../../src/jobs/job-list.ts'
import { type JobInput, submitJob } from '../../src/jobs/submit-job.ts'
import { silentLog } from '../../src/platform/log.ts'
import { addAccount } from '../support/account-rows.ts'
import { tempDatabase } from '../support/database.ts'
import { seedJob } from '../support/job-rows.ts'
import { countedRandom } from '../support/random.ts'
import { idleWorker } from '../support/service.ts'
import { addWebhook } from '../support/webhook-rows.ts'

const PLANS = mergePlans({})
const FREE = findPlan(PLANS, 'free')

async function createServices() {
  const database = await tempDatabase()
  const { clock } = database
  await addAccount(database, 'acc_1')
  await addWebhook(database, { accountId: 'acc_1', events: ['quota.exceeded'] })
  const random = countedRandom()
  const ledger = createUsageLedger({ database, clock, random, log: silentLog, plans: PLANS })
  return { database, clock, random, ledger, worker: idleWorker() }
}

type Services = Awaited<ReturnType<typeof createServices>>

const listOf = (count: number, plan: Partial<Plan> = {}): JobInput => ({
  accountId: 'acc_1',
  keyId: 'key_1',
  plan: { ...FREE, ...plan },
  sandbox: false,
  type: 'batch',
  name: 'March list',
  deduplicate: true,
  rowCount: count,
  options: { checkSmtp: true, forceRefresh: false },
  rows: [Array.from({ length: count }, (_, n) => ({ text: `u${n}@a.test` }))],
})

const jobs = ({ database }: Services) => database.db.selectFrom('job').select('id').execute()

const events = async ({ database }: Services) =>
  (await database.db.selectFrom('event').select('kind').execute()).map(({ kind }) => kind)

async function reserve({ database, clock }: Services, amount: number) {
  const period = periodStart(clock.now())
  const reservation = { accountId: 'acc_1', period, amount, limit: null }
  await write(database, trx => reserveCredits(trx, reservation))
}

test('queues a list with its credits reserved and notifies the worker', async () => {
  const services = await createServices()
  const loaded: number[] = []
  const afterLoad: JobInput['afterLoad'] = async ({ total }) => void loaded.push(total)
  const job = await submitJob(services, { ...listOf(3), afterLoad })
  expect(job).toMatchObject({ state: 'queued', total: 3, held: 3, name: 'March list' })
  expect(services.worker.taken).toEqual([job.id])
  expect(loaded).toEqual([3])
})

test.each<[string, JobInput, object]>([
  ['credits_exceeded', listOf(101), { needed: null, left: 100 }],
  ['list_empty', listOf(0), {}],
  ['concurrent_jobs_exceeded', listOf(1, { concurrentJobs: 1 }), { openLists: 1, max: 1 }],
  [
    'stored_rows_exceeded',
    listOf(9, { storedRows: 10 }),
    { storedRows: 2, rows: 9, isMore: false },
  ],
  [
    'stored_rows_exceeded',
    (({ rowCount: _, ...list }) => list)(listOf(9, { storedRows: 10 })),
    { storedRows: 2, rows: 8, isMore: true },
  ],
])('a list rejected with %s leaves nothing behind', async (code, list, facts) => {
  const services = await createServices()
  const { database, worker } = services
  const texts = ['a@x.example', 'b@x.example']
  await seedJob(database, { id: 'job_other', texts, done: 1 })
  const before = await getAccountLoad(database.db, 'acc_1')
  const submitted = submitJob(services, list)
  await expect(submitted).rejects.toThrow(
    expect.objectContaining({ code, facts: expect.objectContaining(facts) }),
  )
  expect(await jobs(services)).toEqual([{ id: 'job_other' }])
  expect(await getAccountLoad(database.db, 'acc_1')).toEqual(before)
  expect(worker.taken).toEqual([])
})

test('emits an event and stores nothing if the credits are used up', async () => {
  const services = await createServices()
  await reserve(services, 100)
  await expect(submitJob(services, listOf(1))).rejects.toMatchObject({
    code: 'credits_used_up',
    facts: { limit: 100 },
  })
  expect(await events(services)).toEqual(['quota.exceeded'])
  expect(await jobs(services)).toEqual([])
})

test('rejects a list if its credits are used up while it is stored, and leaves nothing behind', async () => {
  const services = await createServices()
  const afterLoad = () => reserve(services, 100)
  await expect(submitJob(services, { ...listOf(3), afterLoad })).rejects.toMatchObject({
    code: 'credits_exceeded',
    facts: { needed: 3, left: 0 },
  })
  expect(await events(services)).toEqual(['quota.exceeded'])
  expect(await jobs(services)).toEqual([])
})

test('the sandbox costs no credits, even if they are used up', async () => {
  const services = await createServices()
  await reserve(services, 100)
  const job = await submitJob(services, { ...listOf(3), sandbox: true })
  expect(job).toMatchObject({ state: 'queued', held: 0, sandbox: 1 })
})

test('rows that keep an external result cost no credits and are not verified', async () => {
  const services = await createServices()
  const { database, clock } = services
  const external = {
    by: 'zerobounce' as const,
    reason: 'external_deliverable' as const,
    status: 'valid',
    detail: null,
    checkedAt: clock.now(),
  }
  const kept = ['a@x.test', 'A@x.test', 'a@X.test'].map(text => ({ text, external }))
  const rows = [...kept, { text: 'b@x.test' }, { text: 'b@x.test', external }]
  const job = await submitJob(services, { ...listOf(rows.length), rows: [rows] })
  // The last row has the result of the first one with its address, which is verified.
  expect(job).toMatchObject({ state: 'queued', total: 5, done: 3, deliverable: 3, held: 1 })
  const items = await database.db
    .selectFrom('item')
    .select(['state', 'class', 'copies'])
    .orderBy('position')
    .execute()
  expect(items).toEqual([
    { state: 'done', class: 'deliverable', copies: 2 },
    { state: 'done', class: 'deliverable', copies: 1 },
    { state: 'same', class: null, copies: 0 },
    { state: 'queued', class: null, copies: 2 },
    { state: 'same', class: null, copies: 0 },
  ])
  const all = await submitJob(services, { ...listOf(3), rows: [kept] })
  expect(all).toMatchObject({ state: 'completed', total: 3, done: 3, held: 0 })
  expect(services.worker.taken).toEqual([job.id])
})
