import { expect, test } from 'vitest'
import { DAY, HOUR } from '../../../src/platform/clock.ts'
import { mail } from '../../support/engine.ts'
import { byLocalPart } from '../../support/list-service.ts'
import { drainEventLoop } from '../../support/wait.ts'
import { createHalfwayListDashboard, createListsDashboard } from './room.ts'

const TEXTS = ['valid@a.test', 'user1@b.test', 'invalid@a.test']

/** A dashboard with a finished list, whose second row is unknown: its server blocks ev. */
async function dashboardWithList(rows: readonly string[] = TEXTS) {
  const blocking = new Set(['mx.b.test'])
  const services = await createListsDashboard({
    works: true,
    engine: {
      zone: mail('b.test', '192.0.2.2'),
      script: {
        greeting: ({ to }) => (blocking.has(to.host) ? '554 5.7.1 Blocked by SBL' : undefined),
        answer: byLocalPart,
      },
    },
  })
  const { get, json } = services
  const id = await services.submit(rows, { name: 'March' })
  await services.finished(id)
  return {
    ...services,
    id,
    path: `/lists/${id}`,
    blocking,
    page: async (of = id) => plain((await get(`/lists/${of}`)).text),
    schedules: async () => ((await json('/v1/schedules')).data as { items: object[] }).items,
  }
}

const plain = (text: string) => text.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ')

test('a list is re-verified, and the new list shows what has changed', async () => {
  const { post, page, path, blocking, clock, finished, signIn } = await dashboardWithList()
  expect(await page()).toContain('Re-verify Rows All rows Unknown')
  blocking.clear()
  await clock.advance(DAY)
  await signIn()
  const sent = await post(`${path}/reverify`, { selected: 'unknown' })
  expect(sent.status).toBe(303)
  const id = sent.headers.get('Location')?.split('/').at(-1) ?? ''
  await finished(id)
  const text = await page(id)
  expect(text).toContain('1 row re-verified so far, 1 with a different class.')
  expect(text).toContain('Before After Rows Unknown Deliverable 1')
})

test('a list without a row to verify says so', async () => {
  const { post, path } = await dashboardWithList(['valid@a.test'])
  const sent = await post(`${path}/reverify`, { selected: 'unknown' })
  expect(sent.status).toBe(400)
  expect(plain(sent.text)).toContain('No row of the list matches the conditions')
})

test('a schedule is created, shown, paused, resumed and deleted', async () => {
  const { id, path, post, page, schedules, clock } = await dashboardWithList()
  const form = { scheduled: 'unknown-90', every_days: '7' }
  expect((await post(`${path}/schedule`, form)).status).toBe(303)
  expect(await schedules()).toMatchObject([
    { job_id: id, every_days: 7, only: ['unknown'], older_than_days: 90 },
  ])
  const text = await page()
  expect(text).toContain(
    'This list is re-verified every 7 days (rows that are unknown or older than 90 days), next at 2026-06-08',
  )
  expect(text).not.toContain('Re-verify on a schedule')
  expect((await post(`${path}/schedule/pause`)).status).toBe(303)
  expect(await page()).toMatch(/The schedule of this list .* is paused\./)
  await clock.advance(HOUR)
  await post(`${path}/schedule/resume`)
  expect(await page()).toContain('next at 2026-06-08 13:00')
  await post(`${path}/schedule/delete`)
  expect(await schedules()).toEqual([])
  expect(await page()).toContain('Re-verify on a schedule')
  expect((await post(`${path}/schedule/pause`)).status).toBe(404)
})

test('an interval that is not allowed is reported', async () => {
  const { path, post, schedules } = await dashboardWithList()
  for (const every_days of ['0', '366', '', 'x']) {
    const sent = await post(`${path}/schedule`, { every_days })
    expect([every_days, sent.status]).toEqual([every_days, 400])
    expect(sent.text).toMatch(/"Interval in days"|&quot;Interval in days&quot;/)
  }
  expect(await schedules()).toEqual([])
})

test('the reason of a pause is shown with the list of the next schedule', async () => {
  const { post, id, path, page, json, request, clock, signIn } = await dashboardWithList()
  await post(`${path}/schedule`, { every_days: '1' })
  for (let day = 0; day < 2; day++) {
    await clock.advance(DAY)
    await drainEventLoop()
  }
  const { items } = (await json('/v1/jobs')).data as { items: { job_id: string }[] }
  const latest = items.map(({ job_id }) => job_id).find(one => one !== id)
  await request(`/v1/jobs/${latest}`, { method: 'DELETE' })
  await signIn()
  expect(await page()).toContain('The results to verify again were deleted')
})

test('a list in process cannot be re-verified yet', async () => {
  const { page } = await createHalfwayListDashboard()
  expect((await page()).text).not.toContain('Re-verify')
})
