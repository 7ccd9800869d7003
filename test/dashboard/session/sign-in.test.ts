import { describe, expect, test } from 'vitest'
import { HOUR } from '../../../src/base/clock.ts'
import { createTestDashboard } from '../../support/dashboard.ts'

describe('signing in', () => {
  test('a page asked for by nobody leads to signing in, and from there back to it', async () => {
    const house = await createTestDashboard({ signIn: false })
    const first = await house.get('/sessions?a=b')
    expect([first.status, first.headers.get('Location')]).toEqual([
      303,
      '/sign-in?next=%2Fsessions%3Fa%3Db',
    ])
    const body = new URLSearchParams({ key: house.key, next: '/sessions?a=b' })
    const done = await house.fetch('/sign-in', { method: 'POST', body })
    expect([done.status, done.headers.get('Location')]).toEqual([303, '/sessions?a=b'])
    expect((await house.get('/sessions')).status).toBe(200)
  })

  test('the cookie is out of reach of scripts, other hosts, other sites and plain HTTP', async () => {
    const house = await createTestDashboard({ signIn: false })
    const cookie = (await house.signIn()).headers.getSetCookie()[0] ?? ''
    expect(cookie).toMatch(/^__Host-ev_session=[a-z0-9]{20,};/)
    for (const word of ['HttpOnly', 'Secure', 'SameSite=Strict', 'Path=/']) {
      expect(cookie).toContain(word)
    }
    expect(cookie).not.toContain('Domain')
  })

  test('nobody is led to another site after signing in', async () => {
    const house = await createTestDashboard({ signIn: false })
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
      const body = new URLSearchParams({ key: house.key, next })
      const done = await house.fetch('/sign-in', { method: 'POST', body })
      expect([next, done.headers.get('Location')]).toEqual([next, '/verify'])
    }
  })

  test('a key that is none, that lacks the scope or may not be used from here is refused in a sentence', async () => {
    const house = await createTestDashboard({ signIn: false })
    const narrow = await house.addKey({ scopes: ['jobs:read'], name: 'narrow' })
    const distant = await house.addKey({ allowedIps: ['198.51.100.0/24'], name: 'distant' })
    const sited = await house.addKey({ allowedDomains: ['shop.example'], name: 'sited' })
    for (const [key, sentence] of [
      [sited, 'The key “sited” may be used by the web sites shop.example alone'],
      ['nonsense', 'This is no valid API key'],
      [narrow, 'The key “narrow” lacks the scope “dashboard”'],
      [distant, 'The key “distant” may not be used from 192.0.2.1'],
    ] as const) {
      const refused = await house.signIn(key)
      expect(refused.status).toBe(401)
      expect(refused.text).toContain(sentence)
      expect(refused.text).not.toContain(`value="${key}"`)
      expect(house.cookies.size).toBe(0)
    }
  })

  test('a key that has expired or was revoked, and a text whose grace is over, open nothing', async () => {
    const house = await createTestDashboard({ signIn: false })
    const now = house.clock.now()
    const keys = [
      await house.addKey({ id: 'key_over', expiresAt: now + HOUR }),
      await house.addKey({ id: 'key_revoked' }),
      await house.addKey({ id: 'key_rotated' }),
    ]
    await house.request('/v1/keys/key_revoked', { method: 'DELETE' })
    await house.request('/v1/keys/key_rotated/rotate', { body: { grace_period_seconds: 3_600 } })
    await house.clock.advance(HOUR)
    for (const key of keys) {
      const refused = await house.signIn(key)
      expect([refused.status, house.cookies.size]).toEqual([401, 0])
    }
    const sessions = await house.database.db.selectFrom('session').select('id').execute()
    expect(sessions).toEqual([])
  })

  test('a key with the scope dashboard alone signs in', async () => {
    const house = await createTestDashboard({ signIn: false })
    const key = await house.addKey({ scopes: ['dashboard'] })
    expect((await house.signIn(key)).status).toBe(303)
    expect((await house.get('/sessions')).status).toBe(200)
  })

  test('with a text that another has taken the place of, it makes nothing that outlives that text', async () => {
    const house = await createTestDashboard({ signIn: false })
    const old = await house.addKey({ id: 'key_rotated' })
    const body = { grace_period_seconds: 3_600 }
    const { data } = await house.json('/v1/keys/key_rotated/rotate', { body })
    await house.signIn(old)
    const asked = async () => {
      const made = await house.post('/keys', { name: 'lasting', scopes: '*' })
      const rotated = await house.post('/keys/key_rotated/rotate', { grace: '604800' })
      return [made, rotated]
    }
    for (const { status, text } of await asked()) {
      expect(status).toBe(403)
      expect(text).toContain('more rights than itself: expires_at')
    }
    expect((await house.json('/v1/keys')).data).toMatchObject({ total: 2 })
    house.cookies.clear()
    await house.signIn((data as { key: string }).key)
    expect((await asked()).map(({ status }) => status)).toEqual([200, 200])
  })

  test('with a text that another has taken the place of, it lasts as long as that text', async () => {
    const house = await createTestDashboard({ signIn: false })
    const old = await house.addKey({ id: 'key_rotated' })
    const body = { grace_period_seconds: 3_600 }
    await house.request('/v1/keys/key_rotated/rotate', { body })
    expect((await house.signIn(old)).status).toBe(303)
    await house.clock.advance(HOUR)
    expect((await house.get('/sessions')).status).toBe(303)
  })

  test('another site can sign nobody in', async () => {
    const house = await createTestDashboard({ signIn: false })
    for (const headers of [{ 'Sec-Fetch-Site': 'cross-site' }, { 'Sec-Fetch-Site': 'same-site' }]) {
      const body = new URLSearchParams({ key: house.key })
      const refused = await house.fetch('/sign-in', { method: 'POST', body, headers })
      expect(refused.status).toBe(403)
    }
    expect(house.cookies.size).toBe(0)
  })

  test('signing out ends the session, not only its cookie', async () => {
    const house = await createTestDashboard()
    const kept = new Map(house.cookies)
    expect((await house.post('/sign-out')).headers.get('Location')).toBe('/sign-in')
    const cookie = [...kept].map(([name, value]) => `${name}=${value}`).join('; ')
    expect((await house.get('/sessions', { Cookie: cookie })).status).toBe(303)
  })

  test('a link of another site is followed once more by the page itself, so that the strict cookie comes along', async () => {
    const house = await createTestDashboard({ signIn: false })
    const bounced = await house.get('/lists', { 'Sec-Fetch-Site': 'cross-site' })
    expect(bounced.status).toBe(200)
    expect(bounced.text).toContain('<meta http-equiv="refresh"')
  })
})

describe('the key of the first start', () => {
  test('is shown once, and signs in', async () => {
    const house = await createTestDashboard({ signIn: false })
    const path = house.firstKeys.offer(house.key)
    const before = await house.get(path)
    expect(before.text).not.toContain(house.key)
    const shown = await house.fetch(path, { method: 'POST' })
    expect(await shown.text()).toContain(house.key)
    expect((await house.get('/sessions')).status).toBe(200)
    const again = await house.fetch(path, { method: 'POST' })
    expect(await again.text()).not.toContain(house.key)
    expect((await house.get(path)).text).toContain('No key is offered here')
  })

  test('is not asked for by another site', async () => {
    const house = await createTestDashboard({ signIn: false })
    const path = house.firstKeys.offer(house.key)
    const headers = { 'Sec-Fetch-Site': 'cross-site' }
    const refused = await house.fetch(path, { method: 'POST', headers })
    expect([refused.status, house.cookies.size]).toEqual([403, 0])
    expect((await house.get(path)).text).toContain('Show the key')
  })

  test('is had by nobody who guesses, nor after an hour', async () => {
    const house = await createTestDashboard({ signIn: false })
    const path = house.firstKeys.offer(house.key)
    expect((await house.get('/welcome/another')).text).toContain('No key is offered here')
    await house.clock.advance(HOUR)
    expect((await house.get(path)).text).toContain('No key is offered here')
  })
})
