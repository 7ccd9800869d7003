import { expect, test } from 'vitest'
import { deleteJob } from '../../../src/jobs/change-job.ts'
import { readJob } from '../../../src/jobs/job-store.ts'
import { HOUR } from '../../../src/platform/clock.ts'
import { seedJob } from '../../support/job-rows.ts'
import { verifyQueued } from '../../support/reverified-job.ts'
import { createListsDashboard } from './room.ts'

const TEXTS = ['valid@a.example', 'timeout@a.example', 'invalid@a.example']

async function dashboardWithList(seed: Partial<Parameters<typeof seedJob>[1]> = {}) {
  const services = await createListsDashboard()
  const job = await seedJob(services.database, { texts: TEXTS, name: 'March', ...seed })
  const { get, database } = services
  return {
    ...services,
    job,
    page: async (id = 'job_a') => plain((await get(`/lists/${id}`)).text),
    schedules: () => database.db.selectFrom('schedule').selectAll().execute(),
  }
}

const plain = (text: string) => text.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ')

test('a list is re-verified, and the new list shows what has changed', async () => {
  const { post, page, database } = await dashboardWithList()
  expect(await page()).toContain('Re-verify Rows All rows Unknown')
  const sent = await post('/lists/job_a/reverify', { selected: 'unknown' })
  expect(sent.status).toBe(303)
  const id = sent.headers.get('Location')?.split('/').at(-1) ?? ''
  expect(await readJob(database, id)).toMatchObject({ total: 3, done: 2 })
  expect(await page(id)).toContain('0 rows re-verified so far, 0 with a different class.')
  await verifyQueued(database, id, { as: { 'timeout@a.example': 'valid@a.example' } })
  const text = await page(id)
  expect(text).toContain('1 row re-verified so far, 1 with a different class.')
  expect(text).toContain('Before After Rows Unknown Deliverable 1')
})

test('a list without a row to verify says so', async () => {
  const { post } = await dashboardWithList({ texts: ['valid@a.example'] })
  const sent = await post('/lists/job_a/reverify', { selected: 'unknown' })
  expect(sent.status).toBe(400)
  expect(plain(sent.text)).toContain('there is nothing to re-verify')
})

test('a schedule is created, shown, paused, resumed and deleted', async () => {
  const { post, page, schedules, clock } = await dashboardWithList()
  const form = { scheduled: 'unknown-90', every_days: '7' }
  expect((await post('/lists/job_a/schedule', form)).status).toBe(303)
  expect(await schedules()).toMatchObject([
    { job_id: 'job_a', every_days: 7, classes: 'unknown', older_than_days: 90 },
  ])
  const text = await page()
  expect(text).toContain(
    'This list is re-verified every 7 days (rows that are unknown or older than 90 days), next at 2026-06-08',
  )
  expect(text).not.toContain('Re-verify on a schedule')
  expect((await post('/lists/job_a/schedule/pause')).status).toBe(303)
  expect(await page()).toMatch(/The schedule of this list .* is paused\./)
  await clock.advance(HOUR)
  await post('/lists/job_a/schedule/resume')
  expect(await page()).toContain('next at 2026-06-08 13:00')
  await post('/lists/job_a/schedule/delete')
  expect(await schedules()).toEqual([])
  expect(await page()).toContain('Re-verify on a schedule')
  expect((await post('/lists/job_a/schedule/pause')).status).toBe(404)
})

test('an interval that is not allowed is reported', async () => {
  const { post, schedules } = await dashboardWithList()
  for (const every_days of ['0', '366', '', 'x']) {
    const sent = await post('/lists/job_a/schedule', { every_days })
    expect([every_days, sent.status]).toEqual([every_days, 400])
  }
  expect(await schedules()).toEqual([])
})

test('the reason of a pause is shown with the list of the next schedule', async () => {
  const { post, page, database, job } = await dashboardWithList()
  await post('/lists/job_a/schedule', { every_days: '30' })
  await database.db.updateTable('schedule').set({ latest_job_id: 'job_b' }).execute()
  const other = await seedJob(database, { id: 'job_b', texts: TEXTS })
  await deleteJob({ database, settings: { dataDir: '' } }, other)
  expect(await page(job.id)).toContain('The results to verify again were deleted')
})

test('a list in process cannot be re-verified yet', async () => {
  const { page } = await dashboardWithList({ done: 1 })
  expect(await page()).not.toContain('Re-verify')
})
