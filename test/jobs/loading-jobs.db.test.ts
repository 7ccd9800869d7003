import { expect, test } from 'vitest'
import { addItems, deleteLoadingJobs } from '../../src/jobs/import/item-import.ts'
import { createJob, findJob, type NewJob } from '../../src/jobs/job-store.ts'
import { HOUR } from '../../src/platform/clock.ts'
import { fakeClock } from '../support/clock.ts'
import { addJob, onPostgres, tempDatabase } from '../support/database.ts'

// What a crash while a list is stored leaves behind.

const newJob = (id: string): NewJob => ({
  id,
  sourceKey: id,
  source: '{}',
  owner: { accountId: 'acc_a', keyId: 'key_a', type: 'batch', name: null, sandbox: false },
})

test.skipIf(onPostgres)(
  'lists that were never queued are deleted at the next start; lists of the command line stay',
  async () => {
    const database = await tempDatabase()
    await createJob(database, newJob('job_loading'))
    await addItems(database, 'job_loading', [{ position: 1, text: 'a', dedupeKey: 'a' }])
    await createJob(database, { id: 'list', sourceKey: 's', source: '{}' })
    await addJob(database, ['a'], 'job_1')
    await deleteLoadingJobs(database)
    expect(await findJob(database, 'job_loading')).toBeNull()
    const items = await database.db.selectFrom('item').select('job_id').execute()
    expect(items).toEqual([{ job_id: 'job_1' }])
    expect(await findJob(database, 'list')).not.toBeNull()
  },
)

test('lists that were never queued are deleted after an hour if another process may be loading them', async () => {
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
