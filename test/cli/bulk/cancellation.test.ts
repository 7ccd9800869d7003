import { expect, test } from 'vitest'
import { watchCancellation } from '../../../src/cli/bulk/work.ts'
import { cancelJob } from '../../../src/jobs/job-state.ts'
import { queuedJob } from '../../support/database.ts'

/** A read goes through several promises before its answer is heard. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise(resolve => setImmediate(resolve))
}

test('a job that another process cancels is noticed within two seconds, though nothing is committed', async () => {
  const { database, clock, job } = await queuedJob(['a'])
  const heard: unknown[] = []
  watchCancellation(database, job.id, error => heard.push(error))
  for (let second = 0; second < 10; second++) {
    await clock.advance(1_000)
    await settled()
  }
  expect(heard).toEqual([])
  await cancelJob(database, job.id)
  await clock.advance(2_000)
  await settled()
  expect(heard).toMatchObject([{ code: 'interrupted' }])
  expect(clock.pending).toBe(0)
})

test('a watch that is ended says nothing more and leaves no timer', async () => {
  const { database, clock, job } = await queuedJob(['a'])
  const heard: unknown[] = []
  const end = watchCancellation(database, job.id, error => heard.push(error))
  await cancelJob(database, job.id)
  end()
  expect(clock.pending).toBe(0)
  await clock.advance(10_000)
  await settled()
  expect(heard).toEqual([])
})
