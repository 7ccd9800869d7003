import { describe, expect, test } from 'vitest'
import { type Database, write } from '../../src/db/database.ts'
import { addItems } from '../../src/jobs/import/item-import.ts'
import { parseRow } from '../../src/jobs/import/submission.ts'
import { cancelJob, startJob } from '../../src/jobs/job-state.ts'
import { createJob, readJob } from '../../src/jobs/job-store.ts'
import { countUnverified, reopenJob } from '../../src/jobs/prepare-resume.ts'
import { erasePersonalData, findPersonalData } from '../../src/maintenance/purge-data.ts'
import { plansOf } from '../db/plan/query-plans.ts'
import { fakeClock } from '../support/clock.ts'
import { fileAll, onPostgres, tempDatabase } from '../support/database.ts'
import { queueJob } from '../support/queue-job.ts'

describe('the cost of resuming a job', () => {
  test('is counted to the end of a long list', async () => {
    const { database } = await job(Array.from({ length: 10_001 }, (_, n) => `u${n}@a.test`))
    await cancelJob(database, 'job_a')
    expect(await countUnverified(database, await readJob(database, 'job_a'))).toBe(10_001)
  })

  test('is zero for an erased address', async () => {
    const { database } = await job(['ann@a.test', 'bob@a.test'])
    await cancelJob(database, 'job_a')
    await erase(database, 'ann@a.test')
    expect(await countUnverified(database, await readJob(database, 'job_a'))).toBe(1)
  })
})

describe('a reopened job', () => {
  test('routes its erased rows again', async () => {
    const { database } = await job(['ann@a.test', 'bob@a.test', 'cid@b.test'])
    await fileAll(database, 'job_a')
    await database.db
      .updateTable('item')
      .set({ state: 'probing', holder: onPostgres ? 'gone' : null })
      .where('position', '=', 2)
      .execute()
    await cancelJob(database, 'job_a')
    for (const address of ['ann@a.test', 'bob@a.test']) await erase(database, address)
    await reopen(database)
    await startJob(database, 'job_a')
    const rows = await database.db.selectFrom('item').select('state').orderBy('position').execute()
    expect(rows.map(({ state }) => state)).toEqual(['queued', 'queued', 'routed'])
  })

  test.skipIf(onPostgres)('uses indexes', async () => {
    const { database } = await job(['ann@a.test'])
    await fileAll(database, 'job_a')
    await cancelJob(database, 'job_a')
    const plan = (await plansOf(database, one => reopen(one))).join('\n')
    expect(plan).toMatch(/item_routed \(operator=\? AND job_id=\?\)/)
    expect(plan).toMatch(/item_probing \(job_id=\?\)/)
    expect(plan).not.toMatch(/SCAN/)
  })
})

async function job(texts: readonly string[]) {
  const clock = fakeClock()
  const database = await tempDatabase({ clock })
  await createJob(database, {
    id: 'job_a',
    sourceKey: 'job_a',
    source: '{}',
    owner: { accountId: 'acc_1', keyId: 'key_1', type: 'batch', name: null, sandbox: false },
  })
  const items = texts.map((text, n) => ({ position: n + 1, ...parseRow(text, n + 1) }))
  await addItems(database, 'job_a', items)
  await queueJob(database, 'job_a')
  return { database, clock }
}

const reopen = async (
  database: Database,
  reservation: { amount: number; period: number } | null = null,
) => {
  const ended = await readJob(database, 'job_a')
  return write(database, trx => reopenJob(trx, ended, { now: database.clock.now(), reservation }))
}

const erase = async (database: Database, address: string) =>
  erasePersonalData(database, await findPersonalData(database, { key: address, text: address }))
