import { describe, expect, test } from 'vitest'
import { createTestDashboard } from '../../support/dashboard.ts'

describe('a state-changing request', () => {
  test('is rejected without the token of this session, or with that of another', async () => {
    const services = await createTestDashboard()
    const other = await createTestDashboard()
    for (const token of ['', 'wrong', await other.csrf().then(text => `${text}x`)]) {
      const refused = await services.post('/sign-out', { _csrf: token })
      expect(refused.status).toBe(403)
      expect(refused.text).toContain('does not belong to your session')
    }
    expect((await services.get('/sessions')).status).toBe(200)
  })

  test('is rejected from another site, even with the token', async () => {
    const services = await createTestDashboard()
    for (const headers of [
      { 'Sec-Fetch-Site': 'cross-site' },
      { 'Sec-Fetch-Site': 'same-site' },
      { 'Sec-Fetch-Site': 'none' },
    ]) {
      expect((await services.post('/sign-out', {}, headers)).status).toBe(403)
    }
    expect((await services.get('/sessions')).status).toBe(200)
  })

  test('is rejected from another origin in an old browser, which sends only Origin', async () => {
    const services = await createTestDashboard()
    const { baseUrl } = services.service.settings
    const jar = [...services.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const send = async (origin: string) => {
      const headers = { Cookie: jar, Origin: origin, 'X-CSRF-Token': await services.csrf() }
      return services.app.fetch(new Request(`${baseUrl}/theme`, { method: 'POST', headers }), {})
    }
    for (const origin of ['https://evil.example', 'null', 'https://ev.test.evil.example', '']) {
      expect([origin, (await send(origin)).status]).toEqual([origin, 403])
    }
    expect((await send(new URL(baseUrl).origin)).status).toBe(303)
  })

  test('is accepted with the token in the header', async () => {
    const services = await createTestDashboard()
    const headers = { 'X-CSRF-Token': await services.csrf() }
    expect((await services.fetch('/sign-out', { method: 'POST', headers })).status).toBe(303)
  })

  test('with a long form is rejected', async () => {
    const services = await createTestDashboard()
    const refused = await services.post('/theme', { theme: 'x'.repeat(70_000) })
    expect([refused.status, refused.text.includes('longer than 64 KB')]).toEqual([413, true])
  })
})
