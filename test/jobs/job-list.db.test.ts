import { expect, test } from 'vitest'
import { write } from '../../src/db/database.ts'
import { queuedItems, storeRoutes } from '../../src/jobs/item-store.ts'
import { findJobs, getRemainingWork, listJobs, unfinishedJobs } from '../../src/jobs/job-list.ts'
import { cancelJob } from '../../src/jobs/job-state.ts'
import { markWritten } from '../../src/jobs/job-store.ts'
import { addJob, queuedJob } from '../support/database.ts'

const ids = (jobs: readonly { id: string }[]) => jobs.map(({ id }) => id)

test('jobs are listed the latest first', async () => {
  const { database, clock } = await queuedJob(['a'], 'job_z')
  await clock.advance(1)
  await addJob(database, ['a'], 'job_a')
  expect(ids(await listJobs(database, {}, 10))).toEqual(['job_a', 'job_z'])
})

test('a job is found by a prefix of its ID, in which no character is a wildcard', async () => {
  const { database } = await queuedJob(['a'], 'job_abc')
  await addJob(database, ['a'], 'job_abd')
  expect(ids(await findJobs(database, 'job_abc'))).toEqual(['job_abc'])
  expect(ids(await findJobs(database, 'job_ab')).sort()).toEqual(['job_abc', 'job_abd'])
  for (const none of ['abc', 'job-abc', 'job%', 'job_a_', 'JOB_ABC', "job_' or ''='"]) {
    expect(await findJobs(database, none), none).toEqual([])
  }
})

test('unfinished jobs can be continued, if only to write their output', async () => {
  const { database } = await queuedJob(['a'], 'open')
  for (const id of ['unwritten', 'written']) await addJob(database, [], id)
  await addJob(database, ['a'], 'cancelled')
  await markWritten(database, 'written')
  await cancelJob(database, 'cancelled')
  expect(ids(await unfinishedJobs(database)).sort()).toEqual(['open', 'unwritten'])
})

test('the remaining work of a job lists operators in due order', async () => {
  const { database, job, clock } = await queuedJob(['a', 'b', 'c', 'd', 'e', 'f'])
  await addJob(database, ['x'], 'another')
  const [a, b, c, d, e] = await queuedItems(database, { jobId: job.id, after: 0, max: 5 })
  const route = (items: readonly (typeof a)[], operator: string, now: number) =>
    write(database, trx =>
      storeRoutes(trx, {
        jobId: job.id,
        now,
        routed: items.map(item => ({
          position: item?.position ?? 0,
          operator,
          domain: 'd.test',
          route: '{}',
        })),
      }),
    )
  const now = clock.now()
  await route([a, b], 'late', now + 5_000)
  await route([c, d], 'soon', now)
  // They wait for room at their operator since then.
  await database.db.updateTable('item').set({ due_at: 0 }).where('operator', '=', 'soon').execute()
  await route([e], 'asked', now)
  const items = database.db.updateTable('item').set({ state: 'probing' })
  await items.where('operator', '=', 'asked').execute()
  expect(await getRemainingWork(database, job.id)).toEqual({
    queued: 1,
    probing: 1,
    waiting: [
      { operator: 'soon', items: 2, dueAt: now },
      { operator: 'late', items: 2, dueAt: now + 5_000 },
    ],
  })
})
