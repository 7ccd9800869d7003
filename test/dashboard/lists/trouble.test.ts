import { expect, test } from 'vitest'
import { seedJob } from '../../support/job-rows.ts'
import { createListsDashboard, EVIL, EVIL_SHOWN } from './room.ts'

test('markup in an address is rendered as text among the rows', async () => {
  const { database, get } = await createListsDashboard()
  await seedJob(database, { texts: [`"${EVIL}"@a.example`] })
  const { text } = await get('/lists/job_a')
  expect(text).toContain(EVIL_SHOWN)
  expect(text).not.toContain(EVIL)
})
