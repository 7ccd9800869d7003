import { describe, expect, test } from 'vitest'
import { DAY, HOUR, MINUTE } from '../../../src/base/clock.ts'
import { write } from '../../../src/store/database.ts'
import { createTestDashboard } from '../../support/dashboard.ts'

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
  test('tells each by its browser', async () => {
    const house = await createTestDashboard({ signIn: false })
    for (const [agent, shown] of AGENTS) {
      const body = new URLSearchParams({ key: house.key })
      await house.fetch('/sign-in', { method: 'POST', body, headers: { 'User-Agent': agent } })
      expect((await house.get('/sessions')).text).toContain(`>${shown}</td>`)
    }
  })

  test('another account’s session is neither shown nor ended', async () => {
    const house = await createTestDashboard()
    await house.addAccount('acc_2')
    const other = await house.addKey({ accountId: 'acc_2', name: 'theirs' })
    const mine = new Map(house.cookies)
    await house.signIn(other)
    const id = (
      await house.service.database.db
        .selectFrom('session')
        .select('id')
        .where('account_id', '=', 'acc_2')
        .executeTakeFirstOrThrow()
    ).id
    house.cookies.clear()
    for (const [name, value] of mine) house.cookies.set(name, value)
    expect((await house.get('/sessions')).text).not.toContain('theirs')
    expect((await house.post(`/sessions/${id}/end`)).status).toBe(404)
    expect((await house.get('/sessions')).status).toBe(200)
  })
})

describe('a session', () => {
  test('ends with its key: revoked, rotated, expired, or no longer one that may sign in', async () => {
    for (const end of ENDS) {
      const house = await createTestDashboard({ signIn: false })
      await house.signIn(await house.addKey({ id: 'key_s', expiresAt: house.clock.now() + DAY }))
      expect((await house.get('/sessions')).status).toBe(200)
      await end(house)
      const after = await house.get('/sessions')
      expect([String(end), after.status]).toEqual([String(end), 303])
      expect((await house.post('/sign-out')).headers.get('Location')).toBe('/sign-in')
    }
  })

  test('opens nothing outside of the addresses of its key, the health of the service and the form of lists neither', async () => {
    const house = await createTestDashboard({ signIn: false })
    await house.signIn(await house.addKey({ allowedIps: ['192.0.2.0/24'] }))
    for (const path of ['/sessions', '/doctor', '/lists/new', '/verify']) {
      const elsewhere = await house.fetch(path, { ip: '198.51.100.7' })
      expect([path, elsewhere.status]).toEqual([path, 303])
    }
    expect((await house.get('/sessions')).status).toBe(200)
  })

  test('that nobody uses ends after twelve hours, though a page stands open and asks by itself', async () => {
    const house = await createTestDashboard()
    for (let hour = 1; hour < 12; hour++) {
      await house.clock.advance(HOUR)
      expect((await house.get('/lists', { 'HX-Request': 'true' })).status).toBe(200)
      expect((await house.get('/lists', { Accept: 'text/event-stream' })).status).toBe(200)
    }
    await house.clock.advance(HOUR)
    expect((await house.get('/lists', { 'HX-Request': 'true' })).status).toBe(401)
  })

  test('that is used goes on, for a week at most', async () => {
    const house = await createTestDashboard()
    for (let half = 1; half < 14; half++) {
      await house.clock.advance(12 * HOUR - MINUTE)
      expect([half, (await house.get('/lists')).status]).toEqual([half, 200])
      await settledWrites(house)
    }
    await house.clock.advance(11 * HOUR)
    expect((await house.get('/lists')).status).toBe(200)
    await settledWrites(house)
    await house.clock.advance(HOUR + 13 * MINUTE)
    expect((await house.get('/lists')).status).toBe(303)
  })

  test('is a new one each time that somebody signs in, whatever cookie they bring', async () => {
    const house = await createTestDashboard({ signIn: false })
    house.cookies.set('__Host-ev_session', 'chosen-by-somebody-else')
    await house.signIn()
    const [first] = [house.cookies.get('__Host-ev_session')]
    expect(first).not.toBe('chosen-by-somebody-else')
    await house.signIn()
    expect(house.cookies.get('__Host-ev_session')).not.toBe(first)
  })
})

type House = Awaited<ReturnType<typeof createTestDashboard>>

const ENDS: readonly ((house: House) => Promise<unknown>)[] = [
  // Whoever changed it, be it by no path of ours.
  ({ database: { db } }) => db.updateTable('api_key').set({ scopes: '["jobs:read"]' }).execute(),
  house => house.request('/v1/keys/key_s', { method: 'DELETE' }),
  house => house.request('/v1/keys/key_s/rotate', { body: { grace_period_seconds: 3_600 } }),
  house => house.clock.advance(DAY),
  house => house.request('/v1/keys/key_s', { method: 'PATCH', body: { scopes: ['jobs:read'] } }),
]

/** The last use of a session is noted behind the back of its page. */
const settledWrites = ({ database }: House) => write(database, async () => {})

describe('who signed in with another key', () => {
  test('is seen and signed out by keys that may change keys, and by no others', async () => {
    const house = await createTestDashboard()
    const narrow = await house.addKey({ name: 'narrow', scopes: ['dashboard', 'account:read'] })
    const [owner] = await sessionIds(house)
    house.cookies.clear()
    await house.signIn(narrow)
    const own = (await sessionIds(house)).find(id => id !== owner) ?? ''
    expect((await house.get('/sessions')).text).not.toContain(`/sessions/${owner}/end`)
    expect((await house.post(`/sessions/${owner}/end`)).status).toBe(404)
    expect(await sessionIds(house)).toHaveLength(2)
    house.cookies.clear()
    await house.signIn()
    expect((await house.get('/sessions')).text).toContain(`/sessions/${own}/end`)
    expect((await house.post(`/sessions/${own}/end`)).status).toBe(303)
    expect(await sessionIds(house)).not.toContain(own)
  })
})

const sessionIds = async ({ database }: House) =>
  (await database.db.selectFrom('session').select('id').execute()).map(({ id }) => id)
