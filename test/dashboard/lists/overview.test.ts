import { describe, expect, test } from 'vitest'
import { MINUTE } from '../../../src/platform/clock.ts'
import { MIXED } from '../../support/job-rows.ts'
import { submitSimulated } from '../../support/list-service.ts'
import {
  createHalfwayListDashboard,
  createListsDashboard,
  createQueuedListDashboard,
  createSimulatedListDashboard,
  EVIL,
  EVIL_SHOWN,
} from './room.ts'

/** Returns the rows of the table as text. */
const rowsOf = (text: string) =>
  [...text.matchAll(/<tr *>(.*?)<\/tr>/gs)].slice(1).map(([, row = '']) =>
    row
      .replace(/<[^>]*>/g, ' ')
      .replace(/\s+/g, ' ')
      .trim(),
  )

describe('the lists of an account', () => {
  test('explain what a list is while there is none', async () => {
    const { get } = await createListsDashboard()
    const { text } = await get('/lists')
    expect(text).toContain('No lists yet')
    expect(text).toContain('https://ev.test/v1/verify/file')
    expect(text).toContain('href="/lists/new"')
  })

  test('show state, rows, classes and time, newest first', async () => {
    const services = await createHalfwayListDashboard()
    const { clock, get, release, finished, id } = services
    await clock.advance(20_000)
    release()
    await finished(id)
    await clock.advance(MINUTE)
    await submitSimulated(services, MIXED, { name: 'April' })
    const { text } = await get('/lists')
    expect(rowsOf(text)).toEqual([
      'April Sandbox Completed 6 1 deliverable, 2 risky, 1 undeliverable, 2 unknown 2026-06-01 12:01 UTC 50 ms',
      'March Completed 6 5 deliverable, 1 risky 2026-06-01 12:00 UTC 20 s',
    ])
    expect(text).toContain('<rect class="fill-risky" x="16.67" y="0" width="33.33"')
  })

  test('show the remaining time of a queued one', async () => {
    const { get } = await createQueuedListDashboard()
    expect(rowsOf((await get('/lists')).text)).toEqual([
      'March Queued 6 0% · 0 done · about 10 seconds left 2026-06-01 12:00 UTC –',
    ])
  })

  test('are polled while one is active, with the progress as on the overview and on its page', async () => {
    const { path, get, post } = await createHalfwayListDashboard()
    const before = (await get('/lists?status=processing')).text
    expect(before).toContain('hx-get="/lists?status=processing" hx-trigger="every 5s"')
    expect(before).toContain('33% · 2 done')
    for (const one of ['/lists', '/overview', path]) {
      expect((await get(one)).text).toMatch(/>33%( ·|<)/)
    }
    await post(`${path}/cancel`)
    expect((await get('/lists')).text).not.toContain('every 5s')
  })

  test('of the sandbox say on their page that the results are simulated', async () => {
    const services = await createSimulatedListDashboard(MIXED, { name: null })
    const { id, path, get, submit } = services
    const live = await submit(MIXED)
    const { text } = await get(path)
    expect(text).toContain('This list is in the sandbox: its results are simulated.')
    expect(text).toMatch(new RegExp(`<h1>${id}</h1>.*?>Completed<.*?>Sandbox<`, 's'))
    expect((await get(`/lists/${live}`)).text).not.toContain('simulated')
  })

  test('are filtered by state; those of the sandbox have a badge and a filter', async () => {
    const services = await createHalfwayListDashboard({ name: 'March' })
    const { get, finished, release, id, json } = services
    release()
    await finished(id)
    const april = await services.submit(MIXED, { name: 'April' })
    await json(`/v1/jobs/${april}/cancel`, { method: 'POST' })
    await submitSimulated(services, MIXED, { name: 'May' })
    const names = async (query: string) =>
      rowsOf((await get(`/lists${query}`)).text).map(row => /^(\w+( Sandbox)?) /.exec(row)?.[1])
    expect(await names('')).toEqual(['May Sandbox', 'April', 'March'])
    expect(await names('?status=completed')).toEqual(['May Sandbox', 'March'])
    expect(await names('?status=cancelled')).toEqual(['April'])
    expect(await names('?sandbox=on')).toEqual(['May Sandbox'])
    const none = (await get('/lists?status=failed')).text
    expect([rowsOf(none), none.includes('No matching lists')]).toEqual([[], true])
  })

  test('are paginated with the filter', async () => {
    const { submit, get } = await createListsDashboard({ settings: { limits: false } })
    for (let n = 10; n < 40; n++) await submit(['valid@a.example'], { name: `list ${n}` })
    const first = (await get('/lists?status=queued')).text
    const older = /<a class="button" href="([^"]+)">Older/
      .exec(first)?.[1]
      ?.replaceAll('&amp;', '&')
    expect(older).toContain('status=queued')
    const second = (await get(older ?? '')).text
    expect([rowsOf(first).length, rowsOf(second).length]).toEqual([25, 5])
    expect(second).not.toContain('>Older<')
    expect(second).toContain('href="/lists?status=queued">Newest')
  })

  test('render markup in names as text', async () => {
    const { get } = await createQueuedListDashboard(MIXED, { name: EVIL })
    const { text } = await get('/lists')
    expect(text).toContain(EVIL_SHOWN)
    expect(text).not.toContain('<img')
  })

  test('do not include those of another account', async () => {
    const { get, asAnother } = await createQueuedListDashboard()
    await asAnother()
    expect((await get('/lists')).text).not.toContain('March')
  })

  test('require the scope jobs:read', async () => {
    const { get, as } = await createListsDashboard()
    await as('verify:single')
    const { status, text } = await get('/lists')
    expect([status, text.includes('does not have the scope jobs:read')]).toEqual([403, true])
  })
})
