import { expect, test } from 'vitest'
import { readCredit, reserveCredits } from '../../src/accounts/credits/credit-store.ts'
import { createUsageLedger } from '../../src/accounts/credits/usage-ledger.ts'
import { findPlan, mergePlans, type Plan, periodStart } from '../../src/accounts/plan.ts'
import { write } from '../../src/db/database.ts'
import { cancelJob } from '../../src/jobs/change-job.ts'
import { readJob } from '../../src/jobs/job-store.ts'
import { resumeJob } from '../../src/jobs/resume-job.ts'
import { silentLog } from '../../src/platform/log.ts'
import { addAccount } from '../support/account-rows.ts'
import { tempDatabase } from '../support/database.ts'
import { MIXED, seedJob } from '../support/job-rows.ts'
import { countedRandom } from '../support/random.ts'
import { idleWorker } from '../support/service.ts'
import { addWebhook } from '../support/webhook-rows.ts'

const PLANS = mergePlans({})
const FREE = findPlan(PLANS, 'free')
const ONE_LIST: Plan = { ...FREE, concurrentJobs: 1 }

async function createServices() {
  const database = await tempDatabase()
  const { clock } = database
  await addAccount(database, 'acc_1')
  const deps = { database, clock, random: countedRandom(), log: silentLog, plans: PLANS }
  const refused: string[] = []
  const metrics = { refused: (limit: string) => void refused.push(limit) }
  return {
    database,
    clock,
    ledger: createUsageLedger(deps),
    worker: idleWorker(),
    metrics,
    refused,
  }
}

type Services = Awaited<ReturnType<typeof createServices>>

async function createCancelledJob({ database }: Services, id = 'job_a') {
  const { job } = await cancelJob(
    { database },
    await seedJob(database, { id, texts: MIXED, done: 2 }),
  )
  return job
}

const credit = ({ database, clock }: Services) =>
  readCredit(database, 'acc_1', periodStart(clock.now()))

test('resumes a job with credits for its remaining rows and notifies the worker', async () => {
  const services = await createServices()
  const job = await createCancelledJob(services)
  expect(await resumeJob(services, { job, plan: FREE })).toMatchObject({
    state: 'processing',
    done: 2,
    held: 4,
  })
  expect(services.worker.taken).toEqual(['job_a'])
  await expect(resumeJob(services, { job, plan: FREE })).rejects.toThrow(
    expect.objectContaining({
      code: 'job_not_resumable',
      facts: { id: 'job_a', state: 'processing' },
    }),
  )
  expect(await credit(services)).toMatchObject({ held: 4 })
})

test('counts a resumed job toward the concurrent lists of the plan', async () => {
  const services = await createServices()
  const job = await createCancelledJob(services)
  const open = await seedJob(services.database, { id: 'job_b', texts: MIXED, done: 1 })
  await expect(resumeJob(services, { job, plan: ONE_LIST })).rejects.toThrow(
    expect.objectContaining({
      code: 'concurrent_jobs_exceeded',
      facts: { plan: 'free', openLists: 1, max: 1 },
    }),
  )
  expect(services.refused).toEqual(['concurrent-jobs'])
  expect(await readJob(services.database, 'job_a')).toEqual(job)
  expect(await credit(services)).toMatchObject({ held: 0 })
  await cancelJob(services, open)
  await resumeJob(services, { job, plan: ONE_LIST })
  expect(services.worker.taken).toEqual(['job_a'])
})

test('resumes a job once for two concurrent requests', async () => {
  const services = await createServices()
  const job = await createCancelledJob(services)
  const both = await Promise.allSettled([
    resumeJob(services, { job, plan: FREE }),
    resumeJob(services, { job, plan: FREE }),
  ])
  expect(both.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
  expect(await credit(services)).toMatchObject({ held: 4 })
})

test('emits an event and leaves the job unchanged if the credits are used up', async () => {
  const services = await createServices()
  const { database } = services
  const job = await createCancelledJob(services)
  await addWebhook(database, { accountId: 'acc_1', events: ['quota.exceeded'] })
  const period = periodStart(services.clock.now())
  const all = { accountId: 'acc_1', period, amount: 100, limit: null }
  await write(database, trx => reserveCredits(trx, all))
  await expect(resumeJob(services, { job, plan: FREE })).rejects.toMatchObject({
    code: 'credits_exceeded',
    facts: { plan: 'free', needed: 4, left: 0 },
  })
  expect(await readJob(database, 'job_a')).toEqual(job)
  const events = await database.db.selectFrom('event').select('kind').execute()
  expect(events).toEqual([{ kind: 'quota.exceeded' }])
})

test('leaves the job unchanged if the transaction fails', async () => {
  const services = await createServices()
  const job = await createCancelledJob(services)
  const failing = async () => {
    throw new Error('no room for the answer')
  }
  await expect(resumeJob(services, { job, plan: FREE }, failing)).rejects.toThrow('no room')
  expect(await readJob(services.database, 'job_a')).toEqual(job)
  expect(services.worker.taken).toEqual([])
})
