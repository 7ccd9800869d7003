import { expect, test } from 'vitest'
import { register } from '../../src/cluster/members.ts'
import type { Database } from '../../src/db/database.ts'
import { addItems } from '../../src/jobs/import/item-import.ts'
import { releaseShare } from '../../src/jobs/item-claims.ts'
import { cancelJob } from '../../src/jobs/job-state.ts'
import { createJob, findJobsByIds, startSharedJob } from '../../src/jobs/job-store.ts'
import { claimItems } from '../support/claims.ts'
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

test('those of many jobs that exist are read at once', async () => {
  const database = await tempDatabase()
  for (const id of ['job_1', 'job_2', 'job_3']) await addAccountJob(database, id)
  await cancelJob(database, 'job_2')
  await addJob(database, ['ann@a'], 'job_alone')
  const ids = ['job_1', 'job_2', 'job_alone', 'job_absent']
  expect((await findJobsByIds(database, ids)).map(({ id }) => id).toSorted()).toEqual([
    ...['job_1', 'job_2', 'job_alone'],
  ])
})

test('a member releases its share of a job, and no other one', async () => {
  const database = await tempDatabase()
  for (const id of ['job_1', 'job_2']) {
    await addJob(database, ['ann@a', 'bob@a', 'cat@a'], id)
    await fileAll(database, id)
  }
  const member = { role: 'worker' as const, name: 'host:1', version: '0', egresses: ['default'] }
  for (const id of ['mem_1', 'mem_2']) await register(database, { ...member, id })
  expect(await claimItems(database, { jobId: 'job_1', max: 2, holder: 'mem_1' })).toEqual([1, 2])
  expect(await claimItems(database, { jobId: 'job_1', max: 1, holder: 'mem_2' })).toEqual([3])
  expect(await claimItems(database, { jobId: 'job_2', max: 1, holder: 'mem_1' })).toEqual([1])
  await database.db.updateTable('item').set({ operator: null }).where('position', '=', 2).execute()
  await releaseShare(database, { jobId: 'job_1', holder: 'mem_1' })
  await releaseShare(database, { jobId: 'job_absent', holder: 'mem_1' })
  const items = await database.db
    .selectFrom('item')
    .select(['job_id', 'state', 'holder'])
    .orderBy('job_id')
    .orderBy('position')
    .execute()
  expect(items.map(({ job_id, state, holder }) => `${job_id} ${state} ${holder}`)).toEqual([
    ...['job_1 routed null', 'job_1 queued null', 'job_1 probing mem_2'],
    ...['job_2 probing mem_1', 'job_2 routed null', 'job_2 routed null'],
  ])
})
