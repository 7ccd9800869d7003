import { describe, expect, test } from 'vitest'
import { DAY } from '../../src/platform/clock.ts'
import { createTestDashboard } from '../support/dashboard.ts'
import { byLocalPart, SANDBOX } from '../support/list-service.ts'
import { users } from '../support/recipients.ts'

/** A dashboard, and a function that verifies addresses whose replies depend on their local part. */
async function createVerifier() {
  const dashboard = await createTestDashboard({ works: true, engine: { script: byLocalPart } })
  const { json, ledger, settled } = dashboard
  const verify = async (...emails: readonly string[]) => {
    for (const email of emails) await json('/v1/verify/single', { body: { email } })
    await settled(ledger.flushed())
  }
  return { ...dashboard, verify }
}

/** A dashboard whose account verified these addresses. */
async function verified(...emails: readonly string[]) {
  const dashboard = await createVerifier()
  await dashboard.verify(...emails)
  return dashboard
}

const HTMX = { 'HX-Request': 'true', 'HX-Target': 'history' }

/** The history part of a page. */
const historyOf = (page: string) => page.slice(page.indexOf('<div id="history">'))

/** The addresses of its table, which is the first one. */
const emails = (page: string) =>
  [
    ...historyOf(page)
      .split('</table>', 1)
      .join('')
      .matchAll(/<th scope="row">(.*?)<\/th>/gs),
  ].map(([, email]) => email)

const linkOf = (page: string, name: string) =>
  new RegExp(`href="([^"#]*)[^"]*">${name}<`).exec(historyOf(page))?.[1]?.replaceAll('&amp;', '&')

describe('the history', () => {
  test('shows each address with class, reason, action, source and time', async () => {
    const { verify, submit, finished, get } = await createVerifier()
    await verify('user1@a.test', 'nobody@a.test')
    const list = await submit(['user1@a.test'])
    await finished(list)
    const { text } = await get('/usage')
    expect(emails(text)).toEqual(['user1@a.test', 'nobody@a.test', 'user1@a.test'])
    expect(text).toContain('is-undeliverable')
    expect(text).toContain('The mail server says that this mailbox does not exist.')
    expect(text).toMatch(/data-label="Action"[^>]*>Suppress</)
    expect(text).toMatch(/data-label="Action"[^>]*>Send</)
    expect(text).toContain(`<a href="/lists/${list}">Batch</a>`)
    expect(text).toContain('<small>cached</small>')
  })

  test('shows that an address is empty', async () => {
    const { json, ledger, settled, get } = await createVerifier()
    await json('/v1/verify/bulk', { body: { emails: [' '] } })
    await settled(ledger.flushed())
    expect(emails((await get('/usage')).text)).toEqual(['<small>(empty)</small>'])
  })

  test('renders markup in addresses and search terms as text', async () => {
    const dashboard = await verified('"<img src=x onerror=alert(1)>"@a.test')
    const searched = encodeURIComponent('<img src=x')
    const { text } = await dashboard.get(`/usage?search=${searched}`)
    expect(emails(text)).toEqual(['&quot;&lt;img src=x onerror=alert(1)&gt;&quot;@a.test'])
    expect(text).toContain('value="&lt;img src=x"')
    expect(text).not.toContain('<img')
  })

  test('is filtered by part of the address, class, reason, source and inclusive dates', async () => {
    const dashboard = await createVerifier()
    const { verify, clock, submit, finished, signIn } = dashboard
    await verify('User1@a.test')
    await clock.advance(DAY)
    await finished(await submit(['user2@b.test']))
    await clock.advance(DAY)
    await verify('risky@a.test')
    await signIn()
    const found = async (query: string) => emails((await dashboard.get(`/usage?${query}`)).text)
    expect(await found('search=USER1')).toEqual(['User1@a.test'])
    expect(await found('class=risky')).toEqual(['risky@a.test'])
    expect(await found('reason=low_deliverability')).toEqual(['risky@a.test'])
    expect(await found('source=batch')).toEqual(['user2@b.test'])
    expect(await found('from=2026-06-02')).toEqual(['risky@a.test', 'user2@b.test'])
    expect(await found('to=2026-06-02')).toEqual(['user2@b.test', 'User1@a.test'])
    expect(await found('from=2026-06-02&to=2026-06-02')).toEqual(['user2@b.test'])
    expect(await found('search=&class=&reason=&source=&from=&to=')).toHaveLength(3)
    expect((await dashboard.get('/usage?search=nobody')).text).toContain('No matches.')
  })

  test('keeps the filter and the period in its form', async () => {
    const dashboard = await verified('user1@a.test')
    const { text } = await dashboard.get(
      '/usage?period=month&search=a.test&class=risky&from=2026-05-01',
    )
    expect(text).toContain('<input type="hidden" name="period" value="month" />')
    expect(text).toMatch(/name="search" type="search" value="a.test"/)
    expect(text).toMatch(/value="risky" selected/)
    expect(text).toMatch(/value="2026-05-01"/)
  })

  test('is paginated with the filter, each row once', async () => {
    const dashboard = await verified(...users(15))
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

  test('shows the error of a rejected search in place of the rows', async () => {
    const dashboard = await verified('user1@a.test')
    const { status, text } = await dashboard.get('/usage?from=yesterday')
    expect(status).toBe(400)
    expect(historyOf(text)).toMatch(/role="alert">.*?<p>.*2026-03-21/s)
    expect(text).toContain('Credits today')
  })

  test('of the sandbox is shown on request', async () => {
    const dashboard = await verified('user1@a.test')
    await dashboard.json('/v1/verify/single', { body: { email: 'valid@a.test' }, ...SANDBOX })
    expect(emails((await dashboard.get('/usage?sandbox=true')).text)).toEqual(['valid@a.test'])
    expect(emails((await dashboard.get('/usage')).text)).toEqual(['user1@a.test'])
  })

  test('is rendered alone for htmx', async () => {
    const dashboard = await verified('user1@a.test')
    const { text, status } = await dashboard.get('/usage?search=user', HTMX)
    expect(status).toBe(200)
    expect(emails(text)).toEqual(['user1@a.test'])
    expect(text.trim()).toMatch(/^<div id="history">/)
    expect((await dashboard.get('/usage?from=x', HTMX)).status).toBe(400)
  })

  test('names the field of a day that is out of range', async () => {
    const { get } = await verified('user1@a.test')
    for (const day of ['20266-01-01', '%2B275760-09-13', '2026-13-01']) {
      const { status, text } = await get(`/usage?to=${day}`, HTMX)
      expect([day, status]).toEqual([day, 400])
      expect(text).toContain('&quot;To (UTC)&quot; in the query is')
    }
    expect((await get('/usage?to=9999-12-31', HTMX)).status).toBe(200)
  })
})
