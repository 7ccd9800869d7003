import { describe, expect, test } from 'vitest'
import { readCredit, reserveCredits } from '../../src/accounts/credits/credit-store.ts'
import { type Database, write } from '../../src/db/database.ts'
import { sandboxResult } from '../../src/engine/sandbox.ts'
import { fromFailure } from '../../src/engine/verdict/build-result.ts'
import { decodeResult } from '../../src/engine/verdict/stored-result.ts'
import { deleteJob } from '../../src/jobs/delete-job.ts'
import {
  addItems,
  deleteLoadingJobs,
  insertFinishedJob,
  queueJobIn as queueCountedJob,
} from '../../src/jobs/import/item-import.ts'
import { accountJob, accountJobs, openJobs } from '../../src/jobs/job-list.ts'
import { cancelJob, failJob, startJob } from '../../src/jobs/job-state.ts'
import { createJob, findJob, type NewJob } from '../../src/jobs/job-store.ts'
import { resultPage } from '../../src/jobs/results/result-store.ts'
import { HOUR } from '../../src/platform/clock.ts'
import { fakeClock } from '../support/clock.ts'
import { onPostgres, tempDatabase } from '../support/database.ts'
import { queueJobIn } from '../support/queue-job.ts'

type Owner = NonNullable<NewJob['owner']>

const newJob = (id: string, owner: Partial<Owner> = {}): NewJob => ({
  id,
  sourceKey: id,
  source: '{}',
  owner: {
    accountId: 'acc_a',
    keyId: 'key_a',
    type: 'batch',
    name: null,
    sandbox: false,
    ...owner,
  },
})

/** Adds a queued job of an account; a text is its own dedupe key. */
async function addQueuedJob(database: Database, id: string, owner: Partial<Owner> = {}, rows = 1) {
  await createJob(database, newJob(id, owner))
  const items = Array.from({ length: rows }, (_, n) => ({
    position: n + 1,
    text: `t${n}`,
    dedupeKey: `t${n}`,
  }))
  await addItems(database, id, items)
  const { clock } = database
  return write(database, trx => queueJobIn(trx, id, { now: clock.now() }))
}

describe('jobs of an account', () => {
  test('are filtered by metadata', async () => {
    const database = await tempDatabase()
    const add = (id: string, source: object) =>
      createJob(database, { ...newJob(id), source: JSON.stringify(source) })
    await add('job_a', { dialect: { header: ['\0'] }, metadata: { 'a."b"': 'x', c: '' } })
    await add('job_b', { metadata: { c: 'x' } })
    await add('job_c', {})
    await database.db.updateTable('job').set({ state: 'queued' }).execute()
    const ids = async (metadata: Readonly<Record<string, string>>) =>
      (await accountJobs(database, { accountId: 'acc_a', after: null, max: 9, metadata }))
        .map(({ id }) => id)
        .sort()
    expect(await ids({ 'a."b"': 'x' })).toEqual(['job_a'])
    expect(await ids({ 'a."b"': 'x', c: '' })).toEqual(['job_a'])
    expect(await ids({ c: 'x' })).toEqual(['job_b'])
    expect(await ids({ $: 'x' })).toEqual([])
    expect(await ids({})).toEqual(['job_a', 'job_b', 'job_c'])
  })

  test('belong to one account and are not loading', async () => {
    const database = await tempDatabase()
    await addQueuedJob(database, 'job_a')
    await createJob(database, newJob('job_loading'))
    expect(await accountJob(database, 'acc_a', 'job_a')).toMatchObject({ id: 'job_a' })
    expect(await accountJob(database, 'acc_b', 'job_a')).toBeNull()
    expect(await accountJob(database, 'acc_a', 'job_loading')).toBeNull()
    expect(await accountJob(database, 'acc_a', 'job_absent')).toBeNull()
  })

  test('are listed newest first in pages, even with equal times', async () => {
    const database = await tempDatabase()
    for (const id of ['job_1', 'job_2', 'job_3']) await addQueuedJob(database, id)
    await createJob(database, newJob('job_loading'))
    await addQueuedJob(database, 'ver_1', { type: 'single' })
    await addQueuedJob(database, 'job_other', { accountId: 'acc_b' })
    const page = async (after: Parameters<typeof accountJobs>[1]['after']) =>
      (await accountJobs(database, { accountId: 'acc_a', after, max: 2 })).map(({ id }) => id)
    expect(await page(null)).toEqual(['job_3', 'job_2'])
    expect(await page({ createdAt: database.clock.now(), id: 'job_2' })).toEqual(['job_1'])
  })

  test('are filtered by state and by sandbox', async () => {
    const database = await tempDatabase()
    await addQueuedJob(database, 'job_1')
    await addQueuedJob(database, 'job_2', { sandbox: true })
    await startJob(database, 'job_2')
    const ids = async (filter: object) =>
      (await accountJobs(database, { accountId: 'acc_a', after: null, max: 9, ...filter })).map(
        ({ id }) => id,
      )
    expect(await ids({ state: 'queued' })).toEqual(['job_1'])
    expect(await ids({ state: 'processing' })).toEqual(['job_2'])
    expect(await ids({ sandbox: true })).toEqual(['job_2'])
    expect(await ids({ sandbox: false })).toEqual(['job_1'])
  })

  test('that are open are listed for all accounts, with single verifications and without command-line lists', async () => {
    const database = await tempDatabase()
    await createJob(database, { id: 'list', sourceKey: 's', source: '{}' })
    await addItems(database, 'list', [{ position: 1, text: 'a', dedupeKey: 'a' }])
    await write(database, trx => queueJobIn(trx, 'list', { now: 0 }))
    await addQueuedJob(database, 'ver_1', { type: 'single' })
    await addQueuedJob(database, 'job_1', { accountId: 'acc_b' })
    await startJob(database, 'job_1')
    await addQueuedJob(database, 'job_over')
    await cancelJob(database, 'job_over')
    expect((await openJobs(database)).map(({ id }) => id)).toEqual(['job_1', 'ver_1'])
  })

  test.skipIf(onPostgres)(
    'that were never queued are deleted at the next start; lists of the command line stay',
    async () => {
      const database = await tempDatabase()
      await createJob(database, newJob('job_loading'))
      await addItems(database, 'job_loading', [{ position: 1, text: 'a', dedupeKey: 'a' }])
      await createJob(database, { id: 'list', sourceKey: 's', source: '{}' })
      await addQueuedJob(database, 'job_1')
      await deleteLoadingJobs(database)
      expect(await findJob(database, 'job_loading')).toBeNull()
      const items = await database.db.selectFrom('item').select('job_id').execute()
      expect(items).toEqual([{ job_id: 'job_1' }])
      expect(await findJob(database, 'list')).not.toBeNull()
    },
  )

  test('that were never queued are deleted after an hour if another process may be loading them', async () => {
    const clock = fakeClock()
    const database = await tempDatabase({ clock })
    await createJob(database, newJob('job_left'))
    await addItems(database, 'job_left', [{ position: 1, text: 'a', dedupeKey: 'a' }])
    await clock.advance(HOUR)
    await createJob(database, newJob('job_loading'))
    await clock.advance(1)
    const deleted = await (onPostgres
      ? deleteLoadingJobs(database)
      : deleteLoadingJobs(database, clock.now() - HOUR))
    expect(deleted).toBe(1)
    expect(await findJob(database, 'job_left')).toBeNull()
    expect(await findJob(database, 'job_loading')).not.toBeNull()
  })
})

test('a job that verifies duplicates separately has no duplicates', async () => {
  const database = await tempDatabase()
  await createJob(database, newJob('j'))
  const twice = [1, 2].map(position => ({ position, text: 'a', dedupeKey: 'a' }))
  await addItems(database, 'j', twice)
  const options = { now: 0, counted: { total: 2, duplicates: 0 }, malformed: 1 }
  expect(await write(database, trx => queueCountedJob(trx, 'j', options))).toMatchObject({
    state: 'queued',
    total: 2,
    duplicates: 0,
    malformed: 1,
    held: 0,
    credit_period: null,
  })
})

test('a list that was answered directly is stored as a completed job with its results', async () => {
  const database = await tempDatabase()
  const { clock } = database
  const results = [
    sandboxResult(clock, 'valid@x.test'),
    sandboxResult(clock, 'invalid@x.test'),
    sandboxResult(clock, 'no address'),
    fromFailure(clock, { text: 'c@x.test', startedAt: 0 }, new Error('poison')),
  ]
  const items = results.map((result, n) => ({
    position: n + 1,
    text: result.email,
    dedupeKey: result.email,
    cells: `"${n}"`,
    result,
  }))
  const job = await write(database, trx => insertFinishedJob(trx, newJob('j'), items, 5_000))
  expect(await findJob(database, 'j')).toEqual(job)
  expect(job).toMatchObject({
    state: 'completed',
    total: 4,
    done: 4,
    malformed: 1,
    failed: 1,
    finished_at: 5_000,
    deliverable: 1,
    undeliverable: 2,
    unknown: 1,
    risky: 0,
  })
  const rows = await resultPage(database, { jobId: 'j', after: 0, max: 9 })
  expect(rows.map(row => [row.text, row.cells, row.class])).toEqual([
    ['valid@x.test', '"0"', 'deliverable'],
    ['invalid@x.test', '"1"', 'undeliverable'],
    ['no address', '"2"', 'undeliverable'],
    ['c@x.test', '"3"', 'unknown'],
  ])
  expect(rows.map(({ result }) => decodeResult(result ?? 'null'))).toEqual(results)
})

describe('reserved credits of a job', () => {
  const PERIOD = 0
  const CREDITS = { accountId: 'acc_a', period: PERIOD }

  async function jobWithReservation() {
    const database = await tempDatabase()
    await createJob(database, newJob('j'))
    await addItems(database, 'j', [{ position: 1, text: 'a', dedupeKey: 'a' }])
    await write(database, async trx => {
      await reserveCredits(trx, { ...CREDITS, amount: 7, limit: 10 })
      await queueJobIn(trx, 'j', { now: 0, reservation: { amount: 7, period: PERIOD } })
    })
    return database
  }

  test.each<[string, (database: Database) => Promise<unknown>]>([
    ['cancelled', database => cancelJob(database, 'j')],
    ['failed', database => write(database, trx => failJob(trx, 'j', 'server_error', 0))],
    ['deleted', database => deleteJob(database, 'j')],
  ])('are released when it is %s', async (_, end) => {
    const database = await jobWithReservation()
    expect(await readCredit(database, 'acc_a', PERIOD)).toMatchObject({ held: 7, used: 0 })
    await end(database)
    expect(await readCredit(database, 'acc_a', PERIOD)).toMatchObject({ held: 0, used: 0 })
    expect((await findJob(database, 'j'))?.held ?? 0).toBe(0)
  })
})

test('deletes all of the thousands of rows of a job', async () => {
  const database = await tempDatabase()
  await addQueuedJob(database, 'j', {}, 10_000)
  await addQueuedJob(database, 'k', {}, 3)
  await deleteJob(database, 'j')
  const left = await database.db.selectFrom('item').select('job_id').execute()
  expect(left.map(({ job_id }) => job_id)).toEqual(['k', 'k', 'k'])
})
