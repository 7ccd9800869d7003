import { describe, expect, test } from 'vitest'
import { addHistory, type Verification } from '../../src/accounts/credits/history.ts'
import { SCANNED_MAX } from '../../src/db/chunked-scan.ts'
import { write } from '../../src/db/database.ts'
import { DAY, HOUR } from '../../src/platform/clock.ts'
import { createTestDashboard } from '../support/dashboard.ts'

/** A house whose account verified these addresses, the last one now. */
async function verified(rows: readonly Partial<Verification>[]) {
  const home = await createTestDashboard()
  const now = home.clock.now()
  await write(home.database, trx =>
    addHistory(
      trx,
      rows.map((row, n) => ({
        ...{ id: `ver_${String(n).padStart(9, '0')}`, account_id: 'acc_1', key_id: 'key_1' },
        ...{ email: 'ann@a.test', valid: 1, deliverable: 1, risk_level: 'low' },
        ...{ reason: 'accepted_email', class: 'deliverable', cached: 0 },
        ...{ source: 'single' as const, job_id: null, sandbox: 0, created_at: now },
        ...row,
      })),
    ),
  )
  return home
}

const HTMX = { 'HX-Request': 'true', 'HX-Target': 'history' }

/** The part of a page below the numbers. */
const historyOf = (page: string) => page.slice(page.indexOf('<div id="history">'))

const emails = (page: string) =>
  [...historyOf(page).matchAll(/<th scope="row">(.*?)<\/th>/gs)].map(([, email]) => email)

const linkOf = (page: string, name: string) =>
  new RegExp(`href="([^"#]*)[^"]*">${name}<`).exec(historyOf(page))?.[1]?.replaceAll('&amp;', '&')

describe('the history', () => {
  test('has each address with its class, its reason in words, who asked and when', async () => {
    const home = await verified([
      { email: 'bob@a.test', source: 'file', job_id: 'job_a', cached: 1 },
      { email: 'eve@a.test', valid: 0, risk_level: 'high', reason: 'rejected_email' },
    ])
    const { text } = await home.get('/usage')
    expect(emails(text)).toEqual(['eve@a.test', 'bob@a.test'])
    expect(text).toContain('is-undeliverable')
    expect(text).toContain('The mail server says that this mailbox does not exist.')
    expect(text).toContain('<a href="/lists/job_a">file</a>')
    expect(text).toContain('<small>cached</small>')
  })

  test('shows markup in addresses and in what is sought as text', async () => {
    const home = await verified([{ email: '"<img src=x onerror=alert(1)>"@a.test' }])
    const sought = encodeURIComponent('<img src=x')
    const { text } = await home.get(`/usage?search=${sought}`)
    expect(emails(text)).toEqual(['&quot;&lt;img src=x onerror=alert(1)&gt;&quot;@a.test'])
    expect(text).toContain('value="&lt;img src=x"')
    expect(text).not.toContain('<img')
  })

  test('is searched by a part of the address, class, reason, source and days, with the last day', async () => {
    const now = Date.parse('2026-06-01T12:00:00Z')
    const home = await verified([
      { email: 'Ann@a.test', created_at: now - 2 * DAY },
      { email: 'bob@b.test', created_at: now - DAY, source: 'batch', job_id: 'job_a' },
      {
        ...{ email: 'eve@b.test', created_at: now - HOUR, class: 'risky', risk_level: 'medium' },
        ...{ reason: 'catch_all' },
      },
    ])
    const found = async (query: string) => emails((await home.get(`/usage?${query}`)).text)
    expect(await found('search=ANN')).toEqual(['Ann@a.test'])
    expect(await found('class=risky')).toEqual(['eve@b.test'])
    expect(await found('reason=catch_all')).toEqual(['eve@b.test'])
    expect(await found('source=batch')).toEqual(['bob@b.test'])
    expect(await found('from=2026-05-31')).toEqual(['eve@b.test', 'bob@b.test'])
    expect(await found('to=2026-05-31')).toEqual(['bob@b.test', 'Ann@a.test'])
    expect(await found('from=2026-05-31&to=2026-05-31')).toEqual(['bob@b.test'])
    expect(await found('search=&class=&reason=&source=&from=&to=')).toHaveLength(3)
    expect((await home.get('/usage?search=nobody')).text).toContain('No matches.')
  })

  test('keeps in its form what was chosen, and the period', async () => {
    const home = await verified([{}])
    const { text } = await home.get('/usage?period=month&search=a.test&class=risky&from=2026-05-01')
    expect(text).toContain('<input type="hidden" name="period" value="month" />')
    expect(text).toMatch(/name="search" type="search" value="a.test"/)
    expect(text).toMatch(/value="risky" selected/)
    expect(text).toMatch(/value="2026-05-01"/)
  })

  test('comes page by page, each row once, with what was chosen', async () => {
    const rows = Array.from({ length: 60 }, (_, n) => ({ email: `user${n}@a.test` }))
    const home = await verified(rows)
    const first = await home.get('/usage?period=month&search=user')
    expect(emails(first.text)).toHaveLength(50)
    const older = linkOf(first.text, 'Older') ?? ''
    expect(older).toContain('period=month&search=user&cursor=')
    const second = await home.get(older)
    expect(emails(second.text)).toHaveLength(10)
    expect(new Set([...emails(first.text), ...emails(second.text)]).size).toBe(60)
    expect(linkOf(second.text, 'Older')).toBeUndefined()
    expect(linkOf(second.text, 'Newest')).toBe('/usage?period=month&search=user')
  })

  test('that is too long to be searched in one go says that it goes back further', async () => {
    const rows = Array.from({ length: SCANNED_MAX + 1 }, (_, n) => ({
      email: n === 0 ? 'eve@a.test' : 'ann@a.test',
    }))
    const home = await verified(rows)
    const { text } = await home.get('/usage?search=eve')
    expect(text).toContain('No matches so far. The history goes back further.')
    const on = await home.get(linkOf(text, 'Search further back') ?? '')
    expect(emails(on.text)).toEqual(['eve@a.test'])
  })

  test('says why a search was refused, in its place: the numbers stay', async () => {
    const home = await verified([{}])
    const { status, text } = await home.get('/usage?from=yesterday')
    expect(status).toBe(400)
    expect(historyOf(text)).toMatch(/role="alert"><p>.*2026-03-21/s)
    expect(text).toContain('Credits today')
  })

  test('of the sandbox is shown instead where that is chosen', async () => {
    const home = await verified([{}, { email: 'sim@a.test', sandbox: 1 }])
    expect(emails((await home.get('/usage?sandbox=true')).text)).toEqual(['sim@a.test'])
    expect(emails((await home.get('/usage')).text)).toEqual(['ann@a.test'])
  })

  test('is sent alone where htmx asks for it', async () => {
    const home = await verified([{}])
    const { text, status } = await home.get('/usage?search=ann', HTMX)
    expect(status).toBe(200)
    expect(emails(text)).toEqual(['ann@a.test'])
    expect(text.trim()).toMatch(/^<div id="history">/)
    expect((await home.get('/usage?from=x', HTMX)).status).toBe(400)
  })
})
