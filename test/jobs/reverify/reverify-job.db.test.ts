import { expect, test } from 'vitest'
import { createUsageLedger } from '../../../src/accounts/credits/usage-ledger.ts'
import { findPlan, mergePlans, type Plan } from '../../../src/accounts/plan.ts'
import { type Database, write } from '../../../src/db/database.ts'
import { cancelJob, deleteJob } from '../../../src/jobs/change-job.ts'
import { type Job, parseJobOptions } from '../../../src/jobs/job-store.ts'
import { countChanges } from '../../../src/jobs/reverify/changes.ts'
import { inheritOptions, reverifyJob } from '../../../src/jobs/reverify/reverify-job.ts'
import type { Selection } from '../../../src/jobs/reverify/selection.ts'
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

function reverify(
  services: Parameters<typeof reverifyJob>[0],
  job: Job,
  selection: Selection = {},
  plan: Plan = FREE,
): Promise<Job> {
  const options = inheritOptions(job)
  return reverifyJob(services, { job, plan, keyId: 'key_1', selection, options })
}

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
