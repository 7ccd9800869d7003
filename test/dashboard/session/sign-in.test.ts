import { describe, expect, test } from 'vitest'
import { HOUR, SECOND } from '../../../src/platform/clock.ts'
import { createTestDashboard } from '../../support/dashboard.ts'

describe('sign-in', () => {
  test('returns to the requested page', async () => {
    const services = await createTestDashboard({ signIn: false })
    const first = await services.get('/sessions?a=b')
    expect([first.status, first.headers.get('Location')]).toEqual([
      303,
      '/sign-in?next=%2Fsessions%3Fa%3Db',
    ])
    const body = new URLSearchParams({ key: services.key, next: '/sessions?a=b' })
    const done = await services.fetch('/sign-in', { method: 'POST', body })
    expect([done.status, done.headers.get('Location')]).toEqual([303, '/sessions?a=b'])
    expect((await services.get('/sessions')).status).toBe(200)
  })

  test('returns to the page of a form that was sent without a session', async () => {
    const services = await createTestDashboard({ signIn: false })
    const from = `${services.service.settings.baseUrl}/keys/new`
    const sent = { method: 'POST', body: new URLSearchParams({ name: 'CI' }) }
    const plain = await services.fetch('/keys', { ...sent, headers: { Referer: from } })
    const htmx = { 'HX-Request': 'true', 'HX-Current-URL': from }
    const part = await services.fetch('/keys', { ...sent, headers: htmx })
    const next = '/sign-in?next=%2Fkeys%2Fnew'
    expect([plain.status, plain.headers.get('Location')]).toEqual([303, next])
    expect([part.status, part.headers.get('HX-Redirect')]).toEqual([401, next])
  })

  test('sets a cookie that scripts, other hosts, other sites and plain HTTP cannot access', async () => {
    const services = await createTestDashboard({ signIn: false })
    const cookie = (await services.signIn()).headers.getSetCookie()[0] ?? ''
    expect(cookie).toMatch(/^__Host-ev_session=[a-z0-9]{20,};/)
    for (const word of ['HttpOnly', 'Secure', 'SameSite=Strict', 'Path=/']) {
      expect(cookie).toContain(word)
    }
    expect(cookie).not.toContain('Domain')
  })

  test('never redirects to another site', async () => {
    const services = await createTestDashboard({ signIn: false })
    for (const next of [
      '/\t/evil.example',
      '/%0d\r\nx',
      'javascript:alert(1)',
      '//evil.example',
      '/\\evil.example',
      'https://evil.example',
      'x',
      '',
    ]) {
      const body = new URLSearchParams({ key: services.key, next })
      const done = await services.fetch('/sign-in', { method: 'POST', body })
      expect([next, done.headers.get('Location')]).toEqual([next, '/overview'])
    }
  })

  test('rejects an invalid key, a missing scope and a disallowed address with an explanation', async () => {
    const services = await createTestDashboard({ signIn: false })
    const narrow = await services.addKey({ scopes: ['jobs:read'], name: 'narrow' })
    const distant = await services.addKey({ allowedIps: ['198.51.100.0/24'], name: 'distant' })
    const sited = await services.addKey({ allowedDomains: ['shop.example'], name: 'sited' })
    for (const [key, sentence] of [
      [sited, 'The key &quot;sited&quot; is restricted to shop.example;'],
      ['nonsense', 'Invalid API key'],
      [narrow, 'The key &quot;narrow&quot; lacks the scope &quot;dashboard&quot;'],
      [distant, 'The key &quot;distant&quot; is not allowed from 192.0.2.1'],
    ] as const) {
      const refused = await services.signIn(key)
      expect(refused.status).toBe(401)
      expect(refused.text).toContain(sentence)
      expect(refused.text).not.toContain(`value="${key}"`)
      expect(services.cookies.size).toBe(0)
    }
  })

  test('is limited to ten failures a minute from one IP address', async () => {
    const services = await createTestDashboard({ signIn: false })
    for (let failed = 0; failed < 10; failed++) {
      expect((await services.signIn('nonsense')).status).toBe(401)
      // A success is not counted.
      if (failed === 5) expect((await services.signIn()).status).toBe(303)
    }
    services.cookies.clear()
    await services.clock.advance(20 * SECOND)
    const refused = await services.signIn()
    expect([refused.status, refused.headers.get('Retry-After')]).toEqual([429, '40'])
    expect(refused.text).toContain(
      'Too many failed sign-ins from 192.0.2.1. Try again in 40 seconds.',
    )
    expect(services.cookies.size).toBe(0)
    await services.clock.advance(40 * SECOND)
    expect((await services.signIn()).status).toBe(303)
  })

  test('rejects an expired or revoked key, and a secret after its grace period', async () => {
    const services = await createTestDashboard({ signIn: false })
    const now = services.clock.now()
    const keys = [
      await services.addKey({ id: 'key_over', expiresAt: now + HOUR }),
      await services.addKey({ id: 'key_revoked' }),
      await services.addKey({ id: 'key_rotated' }),
    ]
    await services.request('/v1/keys/key_revoked', { method: 'DELETE' })
    await services.request('/v1/keys/key_rotated/rotate', { body: { grace_period_seconds: 3_600 } })
    await services.clock.advance(HOUR)
    for (const key of keys) {
      const refused = await services.signIn(key)
      expect([refused.status, services.cookies.size]).toEqual([401, 0])
    }
    const sessions = await services.database.db.selectFrom('session').select('id').execute()
    expect(sessions).toEqual([])
  })

  test('works with only the scope dashboard', async () => {
    const services = await createTestDashboard({ signIn: false })
    const key = await services.addKey({ scopes: ['dashboard'] })
    expect((await services.signIn(key)).status).toBe(303)
    expect((await services.get('/sessions')).status).toBe(200)
  })

  test('with a rotated secret cannot create anything that outlives that secret', async () => {
    const services = await createTestDashboard({ signIn: false })
    const old = await services.addKey({ id: 'key_rotated' })
    const body = { grace_period_seconds: 3_600 }
    const { data } = await services.json('/v1/keys/key_rotated/rotate', { body })
    await services.signIn(old)
    const asked = async () => {
      const made = await services.post('/keys', { name: 'lasting', scopes: '*' })
      const rotated = await services.post('/keys/key_rotated/rotate', { grace: '604800' })
      return [made, rotated]
    }
    for (const { status, text } of await asked()) {
      expect(status).toBe(403)
      expect(text).toContain('more rights than itself: expires_at')
    }
    expect((await services.json('/v1/keys')).data).toMatchObject({ total: 2 })
    services.cookies.clear()
    await services.signIn((data as { key: string }).key)
    expect((await asked()).map(({ status }) => status)).toEqual([200, 200])
  })

  test('with a rotated secret lasts as long as that secret', async () => {
    const services = await createTestDashboard({ signIn: false })
    const old = await services.addKey({ id: 'key_rotated' })
    const body = { grace_period_seconds: 3_600 }
    await services.request('/v1/keys/key_rotated/rotate', { body })
    expect((await services.signIn(old)).status).toBe(303)
    await services.clock.advance(HOUR)
    expect((await services.get('/sessions')).status).toBe(303)
  })

  test('is not possible from another site', async () => {
    const services = await createTestDashboard({ signIn: false })
    for (const headers of [{ 'Sec-Fetch-Site': 'cross-site' }, { 'Sec-Fetch-Site': 'same-site' }]) {
      const body = new URLSearchParams({ key: services.key })
      const refused = await services.fetch('/sign-in', { method: 'POST', body, headers })
      expect(refused.status).toBe(403)
    }
    expect(services.cookies.size).toBe(0)
  })

  test('signing out ends the session, not only its cookie', async () => {
    const services = await createTestDashboard()
    const kept = new Map(services.cookies)
    expect((await services.post('/sign-out')).headers.get('Location')).toBe('/sign-in')
    const cookie = [...kept].map(([name, value]) => `${name}=${value}`).join('; ')
    expect((await services.get('/sessions', { Cookie: cookie })).status).toBe(303)
  })

  test('a link from another site is reloaded, so that the browser sends the strict cookie', async () => {
    const services = await createTestDashboard({ signIn: false })
    const bounced = await services.get('/lists', { 'Sec-Fetch-Site': 'cross-site' })
    expect(bounced.status).toBe(200)
    expect(bounced.text).toContain('<meta http-equiv="refresh"')
  })
})

describe('the key of the first start', () => {
  test('is shown once and signs in', async () => {
    const services = await createTestDashboard({ signIn: false })
    const path = services.firstKeys.offer(services.key)
    const before = await services.get(path)
    expect(before.text).not.toContain(services.key)
    const shown = await services.fetch(path, { method: 'POST' })
    expect(await shown.text()).toContain(services.key)
    expect((await services.get('/sessions')).status).toBe(200)
    const again = await services.fetch(path, { method: 'POST' })
    expect(await again.text()).not.toContain(services.key)
    expect((await services.get(path)).text).toContain('This link has expired')
  })

  test('is not available to another site', async () => {
    const services = await createTestDashboard({ signIn: false })
    const path = services.firstKeys.offer(services.key)
    const headers = { 'Sec-Fetch-Site': 'cross-site' }
    const refused = await services.fetch(path, { method: 'POST', headers })
    expect([refused.status, services.cookies.size]).toEqual([403, 0])
    expect((await services.get(path)).text).toContain('Show the key')
  })

  test('is not available with a wrong token, nor after an hour', async () => {
    const services = await createTestDashboard({ signIn: false })
    const path = services.firstKeys.offer(services.key)
    expect((await services.get('/welcome/another')).text).toContain('This link has expired')
    await services.clock.advance(HOUR)
    expect((await services.get(path)).text).toContain('This link has expired')
  })
})
