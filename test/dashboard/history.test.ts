import { describe, expect, test } from 'vitest'
import { addHistory, type Verification } from '../../src/accounts/credits/history.ts'
import { write } from '../../src/db/database.ts'
import { SCANNED_MAX } from '../../src/db/paging.ts'
import { DAY, HOUR } from '../../src/platform/clock.ts'
import { verificationRow } from '../support/account-rows.ts'
import { createTestDashboard } from '../support/dashboard.ts'

/** A dashboard whose account verified these addresses, the last one now. */
async function verified(rows: readonly Partial<Verification>[]) {
  const dashboard = await createTestDashboard()
  const now = dashboard.clock.now()
  await write(dashboard.database, trx =>
    addHistory(
      trx,
      rows.map((row, n) =>
        verificationRow({ id: `ver_${String(n).padStart(9, '0')}`, created_at: now, ...row }),
      ),
    ),
  )
  return dashboard
}

const HTMX = { 'HX-Request': 'true', 'HX-Target': 'history' }

/** The history part of a page. */
const historyOf = (page: string) => page.slice(page.indexOf('<div id="history">'))

const emails = (page: string) =>
  [...historyOf(page).matchAll(/<th scope="row">(.*?)<\/th>/gs)].map(([, email]) => email)

const linkOf = (page: string, name: string) =>
  new RegExp(`href="([^"#]*)[^"]*">${name}<`).exec(historyOf(page))?.[1]?.replaceAll('&amp;', '&')

describe('the history', () => {
  test('shows each address with class, reason, action, source and time', async () => {
    const dashboard = await verified([
      { email: 'bob@a.test', source: 'file', job_id: 'job_a', cached: 1 },
      { email: 'eve@a.test', valid: 0, risk_level: 'high', reason: 'rejected_email' },
    ])
    const { text } = await dashboard.get('/usage')
    expect(emails(text)).toEqual(['eve@a.test', 'bob@a.test'])
    expect(text).toContain('is-undeliverable')
    expect(text).toContain('The mail server says that this mailbox does not exist.')
    expect(text).toMatch(/data-label="Action"[^>]*>Suppress</)
    expect(text).toMatch(/data-label="Action"[^>]*>Send</)
    expect(text).toContain('<a href="/lists/job_a">File</a>')
    expect(text).toContain('<small>cached</small>')
  })

  test('renders markup in addresses and search terms as text', async () => {
    const dashboard = await verified([{ email: '"<img src=x onerror=alert(1)>"@a.test' }])
    const searched = encodeURIComponent('<img src=x')
    const { text } = await dashboard.get(`/usage?search=${searched}`)
    expect(emails(text)).toEqual(['&quot;&lt;img src=x onerror=alert(1)&gt;&quot;@a.test'])
    expect(text).toContain('value="&lt;img src=x"')
    expect(text).not.toContain('<img')
  })

  test('is filtered by part of the address, class, reason, source and inclusive dates', async () => {
    const now = Date.parse('2026-06-01T12:00:00Z')
    const dashboard = await verified([
      { email: 'Ann@a.test', created_at: now - 2 * DAY },
      { email: 'bob@b.test', created_at: now - DAY, source: 'batch', job_id: 'job_a' },
      {
        email: 'eve@b.test',
        created_at: now - HOUR,
        class: 'risky',
        risk_level: 'medium',
        reason: 'catch_all',
      },
    ])
    const found = async (query: string) => emails((await dashboard.get(`/usage?${query}`)).text)
    expect(await found('search=ANN')).toEqual(['Ann@a.test'])
    expect(await found('class=risky')).toEqual(['eve@b.test'])
    expect(await found('reason=catch_all')).toEqual(['eve@b.test'])
    expect(await found('source=batch')).toEqual(['bob@b.test'])
    expect(await found('from=2026-05-31')).toEqual(['eve@b.test', 'bob@b.test'])
    expect(await found('to=2026-05-31')).toEqual(['bob@b.test', 'Ann@a.test'])
    expect(await found('from=2026-05-31&to=2026-05-31')).toEqual(['bob@b.test'])
    expect(await found('search=&class=&reason=&source=&from=&to=')).toHaveLength(3)
    expect((await dashboard.get('/usage?search=nobody')).text).toContain('No matches.')
  })

  test('keeps the filter and the period in its form', async () => {
    const dashboard = await verified([{}])
    const { text } = await dashboard.get(
      '/usage?period=month&search=a.test&class=risky&from=2026-05-01',
    )
    expect(text).toContain('<input type="hidden" name="period" value="month" />')
    expect(text).toMatch(/name="search" type="search" value="a.test"/)
    expect(text).toMatch(/value="risky" selected/)
    expect(text).toMatch(/value="2026-05-01"/)
  })

  test('is paginated with the filter, each row once', async () => {
    const rows = Array.from({ length: 15 }, (_, n) => ({ email: `user${n}@a.test` }))
    const dashboard = await verified(rows)
    const first = await dashboard.get('/usage?period=month&search=user')
    expect(emails(first.text)).toHaveLength(10)
    const older = linkOf(first.text, 'Older') ?? ''
    expect(older).toContain('period=month&search=user&cursor=')
    const second = await dashboard.get(older)
    expect(emails(second.text)).toHaveLength(5)
    expect(new Set([...emails(first.text), ...emails(second.text)]).size).toBe(15)
    expect(linkOf(second.text, 'Older')).toBeUndefined()
    expect(linkOf(second.text, 'Newest')).toBe('/usage?period=month&search=user')
  })

  test('reports that a long search continues further back', async () => {
    const rows = Array.from({ length: SCANNED_MAX + 1 }, (_, n) => ({
      email: n === 0 ? 'eve@a.test' : 'ann@a.test',
    }))
    const dashboard = await verified(rows)
    const { text } = await dashboard.get('/usage?search=eve')
    expect(text).toContain('No matches so far. The history goes back further.')
    const on = await dashboard.get(linkOf(text, 'Search further back') ?? '')
    expect(emails(on.text)).toEqual(['eve@a.test'])
  })

  test('shows the error of a rejected search in place of the rows', async () => {
    const dashboard = await verified([{}])
    const { status, text } = await dashboard.get('/usage?from=yesterday')
    expect(status).toBe(400)
    expect(historyOf(text)).toMatch(/role="alert">.*?<p>.*2026-03-21/s)
    expect(text).toContain('Credits today')
  })

  test('of the sandbox is shown on request', async () => {
    const dashboard = await verified([{}, { email: 'sim@a.test', sandbox: 1 }])
    expect(emails((await dashboard.get('/usage?sandbox=true')).text)).toEqual(['sim@a.test'])
    expect(emails((await dashboard.get('/usage')).text)).toEqual(['ann@a.test'])
  })

  test('is rendered alone for htmx', async () => {
    const dashboard = await verified([{}])
    const { text, status } = await dashboard.get('/usage?search=ann', HTMX)
    expect(status).toBe(200)
    expect(emails(text)).toEqual(['ann@a.test'])
    expect(text.trim()).toMatch(/^<div id="history">/)
    expect((await dashboard.get('/usage?from=x', HTMX)).status).toBe(400)
  })
})
