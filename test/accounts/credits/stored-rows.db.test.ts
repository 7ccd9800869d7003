import { expect, test } from 'vitest'
import { write } from '../../../src/db/database.ts'
import { deleteJob } from '../../../src/jobs/delete-job.ts'
import { addItems, insertFinishedJob } from '../../../src/jobs/import/item-import.ts'
import { getAccountLoad } from '../../../src/jobs/job-list.ts'
import { cancelJob } from '../../../src/jobs/job-state.ts'
import { createJob } from '../../../src/jobs/job-store.ts'
import { addAccount } from '../../support/account-rows.ts'
import { addJob, tempDatabase } from '../../support/database.ts'
import { seedJob } from '../../support/job-rows.ts'
import { resultOf } from '../../support/result.ts'

const OWNER = { accountId: 'acc_a', keyId: 'key_a', type: 'batch', name: null } as const

async function services() {
  const database = await tempDatabase()
  await addAccount(database, 'acc_a')
  await addAccount(database, 'acc_b')
  const load = (id = 'acc_a') => getAccountLoad(database.db, id)
  return { database, load }
}

test('rows count from when their list is queued until it is deleted, including the sandbox', async () => {
  const { database, load } = await services()
  await seedJob(database, { ...OWNER, id: 'job_a', texts: ['a@a.test', 'b@a.test'], done: 0 })
  await seedJob(database, { ...OWNER, id: 'job_b', texts: ['c@a.test'], sandbox: true })
  await seedJob(database, { ...OWNER, id: 'job_c', texts: ['d@a.test'], accountId: 'acc_b' })
  expect(await load()).toEqual({ storedRows: 3, openLists: 1 })
  await cancelJob(database, 'job_a')
  expect(await load()).toEqual({ storedRows: 3, openLists: 0 })
  await deleteJob(database, 'job_a')
  expect(await load()).toEqual({ storedRows: 1, openLists: 0 })
  expect(await load('acc_b')).toEqual({ storedRows: 1, openLists: 0 })
})

test('a list that was never queued was never counted', async () => {
  const { database, load } = await services()
  await createJob(database, {
    id: 'job_a',
    sourceKey: 'a',
    source: '{}',
    owner: { ...OWNER, sandbox: false },
  })
  await addItems(database, 'job_a', [{ position: 1, text: 'a@a.test', dedupeKey: 'a' }])
  expect(await load()).toEqual({ storedRows: 0, openLists: 0 })
  await seedJob(database, { ...OWNER, id: 'job_b', texts: ['b@a.test'] })
  await deleteJob(database, 'job_a')
  // Two concurrent deletions of the same list subtract it once.
  await Promise.all([deleteJob(database, 'job_b'), deleteJob(database, 'job_b')])
  expect(await load()).toEqual({ storedRows: 0, openLists: 0 })
})

test('single verifications count as rows but not as lists; a list that is answered at once counts too', async () => {
  const { database, load } = await services()
  await seedJob(database, { ...OWNER, id: 'ver_a', type: 'single', texts: ['a@a.test'], done: 0 })
  const job = { id: 'job_b', sourceKey: 'b', source: '{}', owner: { ...OWNER, sandbox: true } }
  const result = resultOf('accepted_email')
  const items = [{ position: 1, text: 'b@a.test', dedupeKey: 'b', result }]
  await write(database, trx => insertFinishedJob(trx, job, items, 1))
  expect(await load()).toEqual({ storedRows: 2, openLists: 0 })
})

test('lists of the command line count for no account', async () => {
  const { database, load } = await services()
  await addJob(database, ['a@a.test'], 'job_a')
  await deleteJob(database, 'job_a')
  expect(await load()).toEqual({ storedRows: 0, openLists: 0 })
  expect(await load('acc_none')).toEqual({ storedRows: 0, openLists: 0 })
})
