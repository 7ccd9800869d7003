import { expect, test } from 'vitest'
import { register } from '../../src/cluster/members.ts'
import type { Database } from '../../src/db/database.ts'
import { addItems } from '../../src/jobs/import/item-import.ts'
import { claimItems, listClaimedItems, releaseItems } from '../../src/jobs/item-claims.ts'
import { cancelJob } from '../../src/jobs/job-state.ts'
import {
  createJob,
  findJobsByIds,
  findOpenJobsByIds,
  startSharedJob,
} from '../../src/jobs/job-store.ts'
import { addJob, fileAll, tempDatabase } from '../support/database.ts'
import { queueJob } from '../support/queue-job.ts'

const owner = {
  accountId: 'acc_1',
  keyId: 'key_1',
  type: 'batch' as const,
  name: null,
  sandbox: false,
}

async function addAccountJob(database: Database, id: string): Promise<void> {
  await createJob(database, { id, sourceKey: id, source: '{}', owner })
  await addItems(database, id, [{ position: 1, text: 'ann@a', dedupeKey: 'ann@a' }])
  await queueJob(database, id)
}

test('a job of an account is started once, and claims of other members stay', async () => {
  const database = await tempDatabase()
  await addAccountJob(database, 'job_1')
  expect(await startSharedJob(database, 'job_1')).toMatchObject({ state: 'processing' })
  await database.db.updateTable('item').set({ state: 'probing' }).execute()
  const { started_at } = (await startSharedJob(database, 'job_1')) ?? {}
  expect(started_at).toBe(database.clock.now())
  expect(await database.db.selectFrom('item').select('state').execute()).toEqual([
    { state: 'probing' },
  ])
})

test('a job that has ended, is of the command line or does not exist is not started', async () => {
  const database = await tempDatabase()
  await addAccountJob(database, 'job_1')
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

test('many jobs are read at once: only the open ones, or all that exist', async () => {
  const database = await tempDatabase()
  for (const id of ['job_1', 'job_2', 'job_3']) await addAccountJob(database, id)
  await cancelJob(database, 'job_2')
  await addJob(database, ['ann@a'], 'job_alone')
  const ids = ['job_1', 'job_2', 'job_alone', 'job_absent']
  expect((await findOpenJobsByIds(database, ids)).map(({ id }) => id)).toEqual(['job_1'])
  expect((await findJobsByIds(database, ids)).map(({ id }) => id).toSorted()).toEqual([
    ...['job_1', 'job_2', 'job_alone'],
  ])
  expect(await findOpenJobsByIds(database, [])).toEqual([])
})

test('releases only the items that a member still holds', async () => {
  const database = await tempDatabase()
  const texts = ['ann@a', 'bob@a', 'cat@a']
  await addJob(database, texts, 'job_1')
  await fileAll(database, 'job_1')
  const member = { role: 'worker' as const, name: 'host:1', version: '0', egresses: ['default'] }
  for (const id of ['mem_1', 'mem_2']) await register(database, { ...member, id })
  const share = { jobId: 'job_1', operator: 'op', egress: 'default', now: database.clock.now() }
  await claimItems(database, { ...share, max: 2, holder: 'mem_1' })
  await claimItems(database, { ...share, max: 1, holder: 'mem_2' })
  const held = await listClaimedItems(database, 'mem_1')
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
