import { describe, expect, test } from 'vitest'
import { createTestDashboard } from '../../support/dashboard.ts'

describe('what changes something', () => {
  test('is refused without the token of this session, or with another’s', async () => {
    const house = await createTestDashboard()
    const other = await createTestDashboard()
    for (const token of ['', 'wrong', await other.csrf().then(text => `${text}x`)]) {
      const refused = await house.post('/sign-out', { _csrf: token })
      expect(refused.status).toBe(403)
      expect(refused.text).toContain('does not belong to your session')
    }
    expect((await house.get('/sessions')).status).toBe(200)
  })

  test('is refused from another site, even with the token', async () => {
    const house = await createTestDashboard()
    for (const headers of [
      { 'Sec-Fetch-Site': 'cross-site' },
      { 'Sec-Fetch-Site': 'same-site' },
      { 'Sec-Fetch-Site': 'none' },
    ]) {
      expect((await house.post('/sign-out', {}, headers)).status).toBe(403)
    }
    expect((await house.get('/sessions')).status).toBe(200)
  })

  test('is refused where an old browser, which names its origin alone, comes from elsewhere', async () => {
    const house = await createTestDashboard()
    const { baseUrl } = house.service.settings
    const jar = [...house.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const send = async (origin: string) => {
      const headers = { Cookie: jar, Origin: origin, 'X-CSRF-Token': await house.csrf() }
      return house.app.fetch(new Request(`${baseUrl}/theme`, { method: 'POST', headers }), {})
    }
    for (const origin of ['https://evil.example', 'null', 'https://ev.test.evil.example', '']) {
      expect([origin, (await send(origin)).status]).toEqual([origin, 403])
    }
    expect((await send(new URL(baseUrl).origin)).status).toBe(303)
  })

  test('is done with the token in the header, as scripts send it', async () => {
    const house = await createTestDashboard()
    const headers = { 'X-CSRF-Token': await house.csrf() }
    expect((await house.fetch('/sign-out', { method: 'POST', headers })).status).toBe(303)
  })

  test('a long form is refused', async () => {
    const house = await createTestDashboard()
    const refused = await house.post('/theme', { theme: 'x'.repeat(70_000) })
    expect([refused.status, refused.text.includes('longer than 64 KB')]).toEqual([413, true])
  })
})
