import { expect, test } from 'vitest'
import { watchCancellation } from '../../../src/cli/bulk/work.ts'
import { cancelJob } from '../../../src/jobs/job-state.ts'
import { queuedJob } from '../../support/database.ts'

/** A read resolves after several promises. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise(resolve => setImmediate(resolve))
}

test('notices within two seconds that another process cancels the job', async () => {
  const { database, clock, job } = await queuedJob(['a'])
  const errors: unknown[] = []
  watchCancellation(database, job.id, error => errors.push(error))
  for (let second = 0; second < 10; second++) {
    await clock.advance(1_000)
    await settled()
  }
  expect(errors).toEqual([])
  await cancelJob(database, job.id)
  await clock.advance(2_000)
  await settled()
  expect(errors).toMatchObject([{ code: 'interrupted' }])
  expect(clock.pending).toBe(0)
})

test('stops without another call and without a timer', async () => {
  const { database, clock, job } = await queuedJob(['a'])
  const errors: unknown[] = []
  const end = watchCancellation(database, job.id, error => errors.push(error))
  await cancelJob(database, job.id)
  end()
  expect(clock.pending).toBe(0)
  await clock.advance(10_000)
  await settled()
  expect(errors).toEqual([])
})
