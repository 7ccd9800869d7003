import { expect, test } from 'vitest'
import { silentLog } from '../../src/base/log.ts'
import { cancelJob } from '../../src/store/job/course.ts'
import { createJob } from '../../src/store/job/jobs.ts'
import { addItems, queueJob } from '../../src/store/job/loading.ts'
import { deleteJob } from '../../src/store/job/removal.ts'
import { watchWithdrawals } from '../../src/work/withdrawal.ts'
import { fakeClock } from '../fake/clock.ts'
import { idleWorker } from '../http/house.ts'
import { tempDatabase } from '../store/temp-database.ts'

test('a job that another process cancels or deletes is dropped within two seconds, others are not', async () => {
  const clock = fakeClock()
  const database = await tempDatabase({ clock })
  const owner = {
    accountId: 'acc_1',
    keyId: 'key_1',
    type: 'batch',
    name: null,
    sandbox: false,
  } as const
  for (const id of ['job_a', 'job_b', 'job_c']) {
    await createJob(database, { id, sourceKey: id, source: '{}', owner })
    await addItems(database, id, [{ position: 1, text: 'a@x.example', dedupeKey: 'a@x.example' }])
    await queueJob(database, id)
  }
  const worker = idleWorker()
  const end = watchWithdrawals(database, worker, silentLog)
  await clock.advance(10_000)
  expect(worker.dropped).toEqual([])
  await cancelJob(database, 'job_a')
  await deleteJob(database, 'job_b')
  await clock.advance(2_000)
  expect(worker.dropped.toSorted()).toEqual(['job_a', 'job_b'])
  await clock.advance(10_000)
  expect(worker.dropped).toHaveLength(2)
  end()
  await clock.advance(0)
  expect(clock.pending).toBe(0)
})
