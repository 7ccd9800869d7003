import { expect, test } from 'vitest'
import { register } from '../../src/cluster/members.ts'
import type { Database } from '../../src/db/database.ts'
import { addItems, queueJob } from '../../src/jobs/import/item-import.ts'
import { claimItems, itemsOf, releaseItems } from '../../src/jobs/item-claims.ts'
import { cancelJob } from '../../src/jobs/job-state.ts'
import { startSharedJob, createJob, jobsAmong, openJobsAmong } from '../../src/jobs/job-store.ts'
import { addJob, fileAll, tempDatabase } from '../support/database.ts'

const owner = {
  ...{ accountId: 'acc_1', keyId: 'key_1', type: 'batch' as const, name: null, sandbox: false },
}

async function addOurs(database: Database, id: string): Promise<void> {
  await createJob(database, { id, sourceKey: id, source: '{}', owner })
  await addItems(database, id, [{ position: 1, text: 'ann@a', dedupeKey: 'ann@a' }])
  await queueJob(database, id)
}

test('a job of an account is begun once, and what others ask about stays theirs', async () => {
  const database = await tempDatabase()
  await addOurs(database, 'job_1')
  expect(await startSharedJob(database, 'job_1')).toMatchObject({ state: 'processing' })
  await database.db.updateTable('item').set({ state: 'probing' }).execute()
  const { started_at } = (await startSharedJob(database, 'job_1')) ?? {}
  expect(started_at).toBe(database.clock.now())
  expect(await database.db.selectFrom('item').select('state').execute()).toEqual([
    { state: 'probing' },
  ])
})

test('a job that is over, of the command line, or not there is not begun', async () => {
  const database = await tempDatabase()
  await addOurs(database, 'job_1')
  await cancelJob(database, 'job_1')
  await addJob(database, ['ann@a'], 'job_alone')
  for (const id of ['job_1', 'job_alone', 'job_absent']) {
    expect(await startSharedJob(database, id)).toBeNull()
  }
  const rows = await database.db.selectFrom('job').select(['id', 'state']).orderBy('id').execute()
  expect(rows).toEqual([
    { id: 'job_1', state: 'cancelled' },
    { id: 'job_alone', state: 'queued' },
  ])
})

test('many jobs are looked at in one go: those that are worked on, or all that are there', async () => {
  const database = await tempDatabase()
  for (const id of ['job_1', 'job_2', 'job_3']) await addOurs(database, id)
  await cancelJob(database, 'job_2')
  await addJob(database, ['ann@a'], 'job_alone')
  const ids = ['job_1', 'job_2', 'job_alone', 'job_absent']
  expect((await openJobsAmong(database, ids)).map(({ id }) => id)).toEqual(['job_1'])
  expect((await jobsAmong(database, ids)).map(({ id }) => id).toSorted()).toEqual([
    ...['job_1', 'job_2', 'job_alone'],
  ])
  expect(await openJobsAmong(database, [])).toEqual([])
})

test('what a member holds is given back as far as it holds it still', async () => {
  const database = await tempDatabase()
  const texts = ['ann@a', 'bob@a', 'cat@a']
  await addJob(database, texts, 'job_1')
  await fileAll(database, 'job_1')
  const me = { role: 'worker' as const, name: 'host:1', version: '0', egresses: ['default'] }
  for (const id of ['mem_1', 'mem_2']) await register(database, { ...me, id })
  const share = { jobId: 'job_1', operator: 'op', egress: 'default', now: database.clock.now() }
  await claimItems(database, { ...share, max: 2, holder: 'mem_1' })
  await claimItems(database, { ...share, max: 1, holder: 'mem_2' })
  const held = await itemsOf(database, 'mem_1')
  expect(held.toSorted((a, b) => a.position - b.position)).toEqual([
    { jobId: 'job_1', position: 1 },
    { jobId: 'job_1', position: 2 },
  ])
  await releaseItems(database, 'mem_1', [
    { jobId: 'job_1', position: 2 },
    { jobId: 'job_1', position: 3 },
  ])
  const items = await database.db
    .selectFrom('item')
    .select(['state', 'holder'])
    .orderBy('position')
    .execute()
  expect(items).toEqual([
    { state: 'probing', holder: 'mem_1' },
    { state: 'routed', holder: null },
    { state: 'probing', holder: 'mem_2' },
  ])
})
