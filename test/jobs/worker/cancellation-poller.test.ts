import { expect, test } from 'vitest'
import { write } from '../../../src/db/database.ts'
import { deleteJob } from '../../../src/jobs/delete-job.ts'
import { addItems } from '../../../src/jobs/import/item-import.ts'
import { cancelJob } from '../../../src/jobs/job-state.ts'
import { createJob, readJob } from '../../../src/jobs/job-store.ts'
import { resumeJob } from '../../../src/jobs/prepare-resume.ts'
import { watchCancellations } from '../../../src/jobs/worker/cancellation-poller.ts'
import { silentLog } from '../../../src/platform/log.ts'
import { fakeClock } from '../../support/clock.ts'
import { tempDatabase } from '../../support/database.ts'
import { queueJob } from '../../support/queue-job.ts'
import { idleWorker } from '../../support/service.ts'

const owner = {
  accountId: 'acc_1',
  keyId: 'key_1',
  name: null,
  sandbox: false,
  type: 'batch',
} as const

test('starts a job that another process resumes within two seconds', async () => {
  const clock = fakeClock()
  const database = await tempDatabase({ clock })
  await createJob(database, { id: 'job_a', sourceKey: 'a', source: '{}', owner })
  await addItems(database, 'job_a', [{ position: 1, text: 'a@x.example', dedupeKey: 'a' }])
  await queueJob(database, 'job_a')
  await cancelJob(database, 'job_a')
  const worker = idleWorker()
  const watch = watchCancellations(database, worker, silentLog)
  await clock.advance(4_000)
  expect(worker.taken).toEqual([])
  const seen = await readJob(database, 'job_a')
  const o = { now: clock.now(), needed: null, creditsPerDay: null }
  await write(database, trx => resumeJob(trx, seen, o))
  await clock.advance(2_000)
  expect(worker.taken).toEqual(['job_a'])
  expect(worker.dropped).toEqual([])
  await watch.stop()
})

test('drops only jobs that another process cancels or deletes, within two seconds', async () => {
  const clock = fakeClock()
  const database = await tempDatabase({ clock })
  for (const id of ['job_a', 'job_b', 'job_c']) {
    await createJob(database, { id, sourceKey: id, source: '{}', owner })
    await addItems(database, id, [{ position: 1, text: 'a@x.example', dedupeKey: 'a@x.example' }])
    await queueJob(database, id)
  }
  const worker = idleWorker()
  const watch = watchCancellations(database, worker, silentLog)
  await clock.advance(10_000)
  expect(worker.dropped).toEqual([])
  await cancelJob(database, 'job_a')
  await deleteJob(database, 'job_b')
  await clock.advance(2_000)
  expect(worker.dropped.toSorted()).toEqual(['job_a', 'job_b'])
  await clock.advance(10_000)
  expect(worker.dropped).toHaveLength(2)
  await watch.stop()
  await clock.advance(0)
  expect(clock.pending).toBe(0)
})

test('drops a job that is submitted, taken and cancelled between two polls', async () => {
  const clock = fakeClock()
  const database = await tempDatabase({ clock })
  const worker = idleWorker()
  const watch = watchCancellations(database, worker, silentLog)
  await clock.advance(100)
  await createJob(database, { id: 'job_a', sourceKey: 'a', source: '{}', owner })
  await addItems(database, 'job_a', [{ position: 1, text: 'a@x.example', dedupeKey: 'a' }])
  await queueJob(database, 'job_a')
  worker.take('job_a')
  await cancelJob(database, 'job_a')
  await clock.advance(2_000)
  expect(worker.dropped).toEqual(['job_a'])
  await watch.stop()
})
