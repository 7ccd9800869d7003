import { expect, test } from 'vitest'
import { acquireLock, jobLock } from '../../src/db/file-lock.ts'
import { deleteJob } from '../../src/jobs/change-job.ts'
import { createJob, findJob, readJob } from '../../src/jobs/job-store.ts'
import { tempDatabase, tempFolder } from '../support/database.ts'

test('deleting fails at once for a list that ev bulk processes, and leaves it unchanged', async () => {
  const database = await tempDatabase()
  const settings = { dataDir: tempFolder() }
  const services = { database, settings }
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
