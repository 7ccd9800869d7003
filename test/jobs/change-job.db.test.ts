import { describe, expect, test } from 'vitest'
import { readCredit, reserveCredits } from '../../src/accounts/credits/credit-store.ts'
import { addHistory } from '../../src/accounts/credits/history.ts'
import { periodStart } from '../../src/accounts/plan.ts'
import { write } from '../../src/db/database.ts'
import { acquireLock, jobLock } from '../../src/db/file-lock.ts'
import { cancelJob, deleteJob, getJob } from '../../src/jobs/change-job.ts'
import { createJob, findJob, readJob } from '../../src/jobs/job-store.ts'
import { addAccount, verificationRow } from '../support/account-rows.ts'
import { tempDatabase, tempFolder } from '../support/database.ts'
import { MIXED, seedJob } from '../support/job-rows.ts'
import { idleWorker } from '../support/service.ts'

async function createServices() {
  const database = await tempDatabase()
  await addAccount(database, 'acc_1')
  return { database, worker: idleWorker(), settings: { dataDir: tempFolder() } }
}

test('does not find a job of another account', async () => {
  const services = await createServices()
  const job = await seedJob(services.database, { texts: MIXED })
  expect(await getJob(services, { jobId: 'job_a', accountId: 'acc_1' })).toEqual(job)
  await expect(getJob(services, { jobId: 'job_a', accountId: 'acc_2' })).rejects.toThrow(
    expect.objectContaining({ code: 'job_not_found', facts: { id: 'job_a' } }),
  )
})

describe('cancelling a job', () => {
  test('notifies the worker once and reports whether it was cancelled before', async () => {
    const services = await createServices()
    const job = await seedJob(services.database, { texts: MIXED, done: 2 })
    expect(await cancelJob(services, job)).toMatchObject({
      isChanged: true,
      job: { state: 'cancelled', done: 2 },
    })
    expect(await cancelJob(services, job)).toMatchObject({
      isChanged: false,
      job: { state: 'cancelled' },
    })
    expect(services.worker.dropped).toEqual(['job_a'])
  })

  test('is refused if the job has ended otherwise or was deleted', async () => {
    const services = await createServices()
    const job = await seedJob(services.database, { texts: MIXED })
    await expect(cancelJob(services, job)).rejects.toThrow(
      expect.objectContaining({
        code: 'job_not_cancellable',
        facts: { id: 'job_a', state: 'completed' },
      }),
    )
    await deleteJob(services, job)
    await expect(cancelJob(services, job)).rejects.toMatchObject({ code: 'job_not_found' })
    expect(services.worker.dropped).toEqual([])
  })
})

describe('deleting a job', () => {
  test('cancels an unfinished job, releases its credits and deletes its history', async () => {
    const services = await createServices()
    const { database, worker } = services
    const job = await seedJob(database, { texts: MIXED, done: 2 })
    const period = periodStart(database.clock.now())
    await write(database, async trx => {
      await reserveCredits(trx, { accountId: 'acc_1', period, amount: 4, limit: null })
      await trx.updateTable('job').set({ held: 4, credit_period: period }).execute()
      const row = { source: 'batch', created_at: database.clock.now() } as const
      await addHistory(trx, [
        verificationRow({ ...row, id: 'ver_1', job_id: 'job_a' }),
        verificationRow({ ...row, id: 'ver_2', job_id: null }),
      ])
    })
    await deleteJob(services, job)
    expect(worker.dropped).toEqual(['job_a'])
    expect(await findJob(database, 'job_a')).toBeNull()
    expect(await readCredit(database, 'acc_1', period)).toMatchObject({ held: 0 })
    const left = await database.db.selectFrom('verification').select('id').execute()
    expect(left).toEqual([{ id: 'ver_2' }])
  })

  test('fails at once for a list that ev bulk processes, and leaves it unchanged', async () => {
    const services = await createServices()
    const { database, settings } = services
    await createJob(database, { id: 'job_own', sourceKey: 'key', source: '{}' })
    const job = await readJob(database, 'job_own')
    const lock = acquireLock(...jobLock(database.file, settings.dataDir, 'key'))
    const cleanUps: string[] = []
    const onDeleted = async () => void cleanUps.push('done')
    await expect(deleteJob(services, job, { isErased: true, onDeleted })).rejects.toThrow(
      expect.objectContaining({ code: 'job_in_use', facts: { id: 'job_own' } }),
    )
    expect(await findJob(database, 'job_own')).toEqual(job)
    expect(cleanUps).toEqual([])
    lock?.release()
    await deleteJob(services, job, { isErased: true, onDeleted })
    expect(await findJob(database, 'job_own')).toBeNull()
    expect(cleanUps).toEqual(['done'])
    const secondLock = acquireLock(...jobLock(database.file, settings.dataDir, 'key'))
    expect(secondLock).not.toBeNull()
    secondLock?.release()
  })
})
