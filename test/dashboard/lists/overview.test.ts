import { describe, expect, test } from 'vitest'
import { cancelJob, startJob } from '../../../src/jobs/job-state.ts'
import { MINUTE, SECOND } from '../../../src/platform/clock.ts'
import { giveResults, MIXED, seedJob } from '../../support/job-rows.ts'
import { createListsDashboard, EVIL, EVIL_SHOWN } from './room.ts'

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
    const { database, clock, get } = await createListsDashboard()
    await seedJob(database, { id: 'job_a', name: 'March', texts: MIXED, done: 0 })
    await clock.advance(MINUTE)
    await startJob(database, 'job_a')
    await clock.advance(20 * SECOND)
    await giveResults(database, 'job_a', 6)
    await seedJob(database, { id: 'job_b', name: 'April', texts: MIXED, done: 0 })
    const { text } = await get('/lists')
    expect(rowsOf(text)).toEqual([
      'April Queued 6 0% · 0 done · about 10 seconds left 2026-06-01 12:01 UTC –',
      'March Completed 6 1 deliverable, 2 risky, 1 undeliverable, 2 unknown 2026-06-01 12:00 UTC 20 s',
    ])
    expect(text).toContain('<rect class="fill-risky" x="16.67" y="0" width="33.33"')
  })

  test('are polled while one is active', async () => {
    const { database, get } = await createListsDashboard()
    await seedJob(database, { texts: MIXED, done: 2 })
    const before = (await get('/lists?status=processing')).text
    expect(before).toContain('hx-get="/lists?status=processing" hx-trigger="every 5s"')
    expect(before).toContain('33% · 2 done')
    await cancelJob(database, 'job_a')
    expect((await get('/lists')).text).not.toContain('every 5s')
  })

  test('show their progress as on the overview and on their page, rounded down', async () => {
    const { database, get } = await createListsDashboard()
    const texts = Array.from({ length: 60 }, (_, n) => `valid${n}@a.example`)
    await seedJob(database, { id: 'job_a', texts, done: 59 })
    for (const path of ['/lists', '/overview', '/lists/job_a'])
      expect((await get(path)).text).toMatch(/>98%( ·|<)/)
  })

  test('of the sandbox say on their page that the results are simulated', async () => {
    const { database, get } = await createListsDashboard()
    await seedJob(database, { id: 'job_a', texts: MIXED, sandbox: true })
    await seedJob(database, { id: 'job_b', texts: MIXED })
    const { text } = await get('/lists/job_a')
    expect(text).toContain('This list is in the sandbox: its results are simulated.')
    expect(text).toMatch(/<h1>job_a<\/h1>.*?>Completed<.*?>Sandbox</s)
    expect((await get('/lists/job_b')).text).not.toContain('simulated')
  })

  test('are filtered by state; those of the sandbox have a badge and a filter', async () => {
    const { database, get } = await createListsDashboard()
    await seedJob(database, { id: 'job_a', name: 'March', texts: MIXED })
    await seedJob(database, { id: 'job_b', name: 'April', texts: MIXED, done: 2 })
    await cancelJob(database, 'job_b')
    await seedJob(database, { id: 'job_c', name: 'May', texts: MIXED, sandbox: true })
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
    const { database, get } = await createListsDashboard()
    for (let n = 10; n < 40; n++) {
      await seedJob(database, { id: `job_${n}`, name: `list ${n}`, texts: ['valid@a.example'] })
    }
    const first = (await get('/lists?status=completed')).text
    const older = /<a class="button" href="([^"]+)">Older/
      .exec(first)?.[1]
      ?.replaceAll('&amp;', '&')
    expect(older).toContain('status=completed')
    const second = (await get(older ?? '')).text
    expect([rowsOf(first).length, rowsOf(second).length]).toEqual([25, 5])
    expect(second).not.toContain('>Older<')
    expect(second).toContain('href="/lists?status=completed">Newest')
  })

  test('render markup in names as text', async () => {
    const { database, get } = await createListsDashboard()
    await seedJob(database, { texts: MIXED, name: EVIL })
    const { text } = await get('/lists')
    expect(text).toContain(EVIL_SHOWN)
    expect(text).not.toContain('<img')
  })

  test('do not include those of another account', async () => {
    const { database, get, asAnother } = await createListsDashboard()
    await seedJob(database, { texts: MIXED, name: 'March' })
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
