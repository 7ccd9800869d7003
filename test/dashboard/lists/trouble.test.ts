import { expect, test } from 'vitest'
import { seedJob } from '../../support/job-rows.ts'
import { EVIL, EVIL_SHOWN, listsHouse } from './room.ts'

test('an address with markup is shown as text among the rows', async () => {
  const { database, get } = await listsHouse()
  await seedJob(database, { texts: [`"${EVIL}"@a.example`] })
  const { text } = await get('/lists/job_a')
  expect(text).toContain(EVIL_SHOWN)
  expect(text).not.toContain(EVIL)
})
