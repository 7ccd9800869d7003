import { describe, expect, test } from 'vitest'
import { DAY, HOUR, MINUTE } from '../../../src/platform/clock.ts'
import { createTestDashboard } from '../../support/dashboard.ts'
import { drainEventLoop } from '../../support/wait.ts'

const AGENTS: readonly [agent: string, shown: string][] = [
  [
    'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/153.0.0.0 Safari/537.36',
    'Chrome 153 on Linux',
  ],
  [
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/150.0.0.0 Safari/537.36 Edg/150.0.0.0',
    'Edge 150 on Windows',
  ],
  [
    'Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/19.0 Mobile/15E148 Safari/604.1',
    'Safari 19 on iOS',
  ],
  [
    'Mozilla/5.0 (Android 16; Mobile; rv:140.0) Gecko/140.0 Firefox/140.0',
    'Firefox 140 on Android',
  ],
  ['curl/8.5.0', 'curl/8.5.0'],
  ['<script>alert(1)</script>', '&lt;script&gt;alert(1)&lt;/script&gt;'],
]

describe('the list of sessions', () => {
  test('shows the browser of each', async () => {
    const services = await createTestDashboard({ signIn: false })
    for (const [agent, shown] of AGENTS) {
      const body = new URLSearchParams({ key: services.key })
      await services.fetch('/sign-in', { method: 'POST', body, headers: { 'User-Agent': agent } })
      expect((await services.get('/sessions')).text).toContain(`>${shown}</span>`)
    }
  })

  test('neither shows nor ends a session of another account', async () => {
    const services = await createTestDashboard()
    await services.addAccount('acc_2')
    const other = await services.addKey({ accountId: 'acc_2', name: 'theirs' })
    const mine = new Map(services.cookies)
    await services.signIn(other)
    const id = (
      await services.service.database.db
        .selectFrom('session')
        .select('id')
        .where('account_id', '=', 'acc_2')
        .executeTakeFirstOrThrow()
    ).id
    services.cookies.clear()
    for (const [name, value] of mine) services.cookies.set(name, value)
    expect((await services.get('/sessions')).text).not.toContain('theirs')
    expect((await services.post(`/sessions/${id}/end`)).status).toBe(404)
    expect((await services.get('/sessions')).status).toBe(200)
  })
})

describe('a session', () => {
  test('ends when its key is revoked, rotated, expired, or loses the scope', async () => {
    for (const end of ENDS) {
      const services = await createTestDashboard({ signIn: false })
      await services.signIn(
        await services.addKey({ id: 'key_s', expiresAt: services.clock.now() + DAY }),
      )
      expect((await services.get('/sessions')).status).toBe(200)
      await end(services)
      const after = await services.get('/sessions')
      expect([String(end), after.status]).toEqual([String(end), 303])
      expect((await services.post('/sign-out')).headers.get('Location')).toBe('/sign-in')
    }
  })

  test('is valid only from the IP addresses of its key, on every page', async () => {
    const services = await createTestDashboard({ signIn: false })
    await services.signIn(await services.addKey({ allowedIps: ['192.0.2.0/24'] }))
    for (const path of ['/sessions', '/doctor', '/lists/new', '/verify']) {
      const elsewhere = await services.fetch(path, { ip: '198.51.100.7' })
      expect([path, elsewhere.status]).toEqual([path, 303])
    }
    expect((await services.get('/sessions')).status).toBe(200)
  })

  test('expires after twelve hours without activity, which polling does not count as', async () => {
    const services = await createTestDashboard()
    for (let hour = 1; hour < 12; hour++) {
      await services.clock.advance(HOUR)
      expect((await services.get('/lists', { 'HX-Request': 'true' })).status).toBe(200)
      expect((await services.get('/lists', { Accept: 'text/event-stream' })).status).toBe(200)
    }
    await services.clock.advance(HOUR)
    expect((await services.get('/lists', { 'HX-Request': 'true' })).status).toBe(401)
  })

  test('is extended by activity, up to a week', async () => {
    const services = await createTestDashboard()
    for (let half = 1; half < 14; half++) {
      await services.clock.advance(12 * HOUR - MINUTE)
      expect([half, (await services.get('/lists')).status]).toEqual([half, 200])
      await drainEventLoop()
    }
    await services.clock.advance(11 * HOUR)
    expect((await services.get('/lists')).status).toBe(200)
    await drainEventLoop()
    await services.clock.advance(HOUR + 13 * MINUTE)
    expect((await services.get('/lists')).status).toBe(303)
  })

  test('gets a new token at each sign-in, whatever cookie the browser sends', async () => {
    const services = await createTestDashboard({ signIn: false })
    services.cookies.set('__Host-ev_session', 'chosen-by-an-attacker')
    await services.signIn()
    const [first] = [services.cookies.get('__Host-ev_session')]
    expect(first).not.toBe('chosen-by-an-attacker')
    await services.signIn()
    expect(services.cookies.get('__Host-ev_session')).not.toBe(first)
  })
})

type TestDashboard = Awaited<ReturnType<typeof createTestDashboard>>

const ENDS: readonly ((services: TestDashboard) => Promise<unknown>)[] = [
  // Changed directly in the database.
  ({ database: { db } }) => db.updateTable('api_key').set({ scopes: '["jobs:read"]' }).execute(),
  services => services.request('/v1/keys/key_s', { method: 'DELETE' }),
  services => services.request('/v1/keys/key_s/rotate', { body: { grace_period_seconds: 3_600 } }),
  services => services.clock.advance(DAY),
  services =>
    services.request('/v1/keys/key_s', { method: 'PATCH', body: { scopes: ['jobs:read'] } }),
]

describe('a session of another key', () => {
  test('is visible to and ended by keys with keys:write only', async () => {
    const services = await createTestDashboard()
    const narrow = await services.addKey({ name: 'narrow', scopes: ['dashboard', 'account:read'] })
    const [owner] = await sessionIds(services)
    services.cookies.clear()
    await services.signIn(narrow)
    const own = (await sessionIds(services)).find(id => id !== owner) ?? ''
    expect((await services.get('/sessions')).text).not.toContain(`/sessions/${owner}/end`)
    expect((await services.post(`/sessions/${owner}/end`)).status).toBe(404)
    expect(await sessionIds(services)).toHaveLength(2)
    services.cookies.clear()
    await services.signIn()
    expect((await services.get('/sessions')).text).toContain(`/sessions/${own}/end`)
    const ended = await services.post(`/sessions/${own}/end`, { current: services.key })
    expect(ended.status).toBe(303)
    expect(await sessionIds(services)).not.toContain(own)
  })
})

const sessionIds = async ({ database }: TestDashboard) =>
  (await database.db.selectFrom('session').select('id').execute()).map(({ id }) => id)
