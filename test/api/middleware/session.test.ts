import { describe, expect, test } from 'vitest'
import { SESSION_VIEWS_MAX } from '../../../src/api/middleware/rate-limit-buckets.ts'
import { DAY, MINUTE } from '../../../src/platform/clock.ts'
import { addGuardedRoute, codeOf, limitOf } from '../../support/guarded-route.ts'
import { openHttpServer } from '../../support/http-server.ts'
import { createTestService } from '../../support/service.ts'

const SESSION = { keyId: 'key_1', sessionId: 'ses_a', secretExpiresAt: null }

/** Requests of the dashboard in the same process. */
async function signedIn(o: Parameters<typeof createTestService>[0] = {}) {
  const h = await createTestService(o)
  addGuardedRoute(h, '/v1/room')
  addGuardedRoute(h, '/v1/single', { counts: 'single' })
  addGuardedRoute(h, '/v1/list', { counts: 'bulk' })
  const ask = (options: Parameters<typeof h.request>[1] = {}, path = '/v1/room') =>
    h.request(path, { body: {}, key: null, session: SESSION, ...options })
  return { ...h, ask }
}

describe('a session', () => {
  test('acts as its key, without the secret', async () => {
    const h = await signedIn()
    expect((await h.ask()).status).toBe(200)
    expect((await h.ask({ session: undefined })).status).toBe(401)
    const credits = await h.ask({ method: 'GET', body: undefined }, '/v1/credits')
    expect(await credits.json()).toMatchObject({ data: { api_key_id: 'key_1' } })
    await h.clock.advance(20_000)
    const { data } = await h.json('/v1/keys/key_1')
    expect(data).toMatchObject({ last_used_at: '2026-06-01T12:00:00.000Z' })
  })

  test('of a missing, revoked or expired key is refused', async () => {
    const { ask, addKey, request, clock } = await signedIn()
    const of = async (keyId: string) => {
      const answer = await ask({ session: { ...SESSION, keyId } })
      return answer.status === 200 ? 200 : [answer.status, await codeOf(answer)]
    }
    await addKey({ id: 'key_short', expiresAt: clock.now() + DAY })
    await addKey({ id: 'key_gone' })
    expect([await of('key_short'), await of('key_gone')]).toEqual([200, 200])
    await request('/v1/keys/key_gone', { method: 'DELETE' })
    await clock.advance(DAY)
    for (const id of ['key_short', 'key_gone', 'key_none']) {
      expect(await of(id)).toEqual([401, 'authentication_error'])
    }
  })

  test('that was opened with a replaced secret has the rights of that secret, and ends with it', async () => {
    const { ask, clock, addKey } = await signedIn()
    await addKey({ id: 'key_b' })
    const session = { ...SESSION, secretExpiresAt: clock.now() + MINUTE }
    const keys = async (body: object) => {
      const answer = await ask({ session, body }, '/v1/keys')
      return [answer.status, await codeOf(answer)]
    }
    const lasting = { name: 'x', scopes: ['*'], expires_at: null }
    expect(await keys(lasting)).toEqual([403, 'insufficient_scope'])
    const made = await ask({ session, body: { name: 'x', scopes: ['*'] } }, '/v1/keys')
    expect(await made.json()).toMatchObject({ data: { expires_at: '2026-06-01T12:01:00.000Z' } })
    const remove = { session, method: 'DELETE', body: undefined }
    expect((await ask(remove, '/v1/keys/key_b')).status).toBe(403)
    expect((await ask({ session })).status).toBe(200)
    await clock.advance(MINUTE)
    expect(await keys(lasting)).toEqual([401, 'authentication_error'])
  })

  test('survives a rotation of its key', async () => {
    const { ask, request } = await signedIn()
    await request('/v1/keys/key_1/rotate', { body: { grace_period_seconds: 0 } })
    expect((await ask()).status).toBe(200)
  })

  test('is refused at once if its key may no longer sign in', async () => {
    const { ask, addKey, database } = await signedIn()
    const session = { ...SESSION, keyId: 'key_b' }
    await addKey({ id: 'key_b', scopes: ['dashboard', 'verify:single'] })
    expect((await ask({ session })).status).toBe(200)
    // Like a change by another process, which is not noticed here.
    await database.db
      .updateTable('api_key')
      .set({ scopes: '["verify:single"]' })
      .where('id', '=', 'key_b')
      .execute()
    const refused = await ask({ session })
    expect([refused.status, await codeOf(refused)]).toEqual([401, 'authentication_error'])
  })

  test('has the scopes and IP restrictions of its key', async () => {
    const { ask, addKey, request } = await signedIn()
    const session = { ...SESSION, keyId: 'key_b' }
    await addKey({ id: 'key_b', scopes: ['dashboard'], allowedIps: ['192.0.2.0/24'] })
    const narrow = await ask({ session })
    expect([narrow.status, await codeOf(narrow)]).toEqual([403, 'insufficient_scope'])
    const wider = { scopes: ['*'], allowed_domains: ['ev.test'] }
    await request('/v1/keys/key_b', { method: 'PATCH', body: wider })
    const headers = { Origin: 'https://ev.test' }
    expect((await ask({ session, headers })).status).toBe(200)
    expect(await codeOf(await ask({ session }))).toBe('domain_restricted')
    expect(await codeOf(await ask({ session, headers, ip: '203.0.113.9' }))).toBe('ip_restricted')
  })

  test('is in the sandbox if the header says so', async () => {
    const { ask } = await signedIn()
    const answer = await ask({ headers: { 'X-EV-Sandbox': 'true' } })
    expect(await answer.json()).toMatchObject({ sandbox: true })
  })

  test('is logged by its ID only', async () => {
    const { ask, lines } = await signedIn()
    await ask()
    const fields = lines.find(({ message }) => message === 'request')?.fields
    expect(fields).toMatchObject({ keyId: 'key_1', sessionId: 'ses_a' })
  })
})

describe('a read request of a session', () => {
  test('is counted for the session, not by the plan of its key', async () => {
    const { ask, clock, key } = await signedIn({ plan: 'free' })
    for (let left = SESSION_VIEWS_MAX - 1; left >= 0; left--) {
      expect(limitOf(await ask())).toMatchObject({ limit: SESSION_VIEWS_MAX, remaining: left })
    }
    const refused = await ask()
    expect(refused.status).toBe(429)
    expect(await refused.json()).toMatchObject({
      code: 'rate_limit',
      error: expect.stringContaining('600 requests a minute in one dashboard session'),
    })
    // A second session of the same key, and the key itself.
    expect((await ask({ session: { ...SESSION, sessionId: 'ses_b' } })).status).toBe(200)
    expect(limitOf(await ask({ session: undefined, key }))).toMatchObject({
      limit: 10,
      remaining: 9,
    })
    await clock.advance(MINUTE)
    expect((await ask()).status).toBe(200)
  })

  test('is not limited by the own limit of its key', async () => {
    const { ask, addKey } = await signedIn()
    await addKey({ id: 'key_b', rateLimitPerMinute: 1 })
    const session = { ...SESSION, keyId: 'key_b' }
    expect([(await ask({ session })).status, (await ask({ session })).status]).toEqual([200, 200])
  })
})

test('a verification of a session counts as with the key', async () => {
  const { ask, addKey } = await signedIn()
  await addKey({ id: 'key_b', rateLimitPerMinute: 2 })
  const session = { ...SESSION, keyId: 'key_b' }
  for (const path of ['/v1/single', '/v1/list']) {
    expect((await ask({ session }, path)).status).toBe(200)
  }
  const refused = await ask({ session }, '/v1/single')
  expect([refused.status, limitOf(refused).limit]).toEqual([429, 2])
  expect((await ask({ session })).status).toBe(200)
})

test('a network request cannot claim a session', async () => {
  const { app, key } = await signedIn()
  const server = await openHttpServer({
    paths: outer => outer.all('/v1/*', c => app.fetch(c.req.raw, c.env as object)),
  })
  const json = JSON.stringify(SESSION)
  const ask = (headers: Record<string, string>, path = '/v1/credits', init: RequestInit = {}) =>
    fetch(`http://127.0.0.1:${server.port}${path}`, { ...init, headers })
  const query = `session=${encodeURIComponent(json)}&keyId=key_1&sessionId=ses_a`
  const body = JSON.stringify({ session: SESSION, env: { session: SESSION } })
  const asked = [
    ask({ session: json }),
    ask({ Session: 'ses_a', 'X-Session': json, 'X-EV-Session': json, 'X-Key-Id': 'key_1' }),
    ask({
      keyId: 'key_1',
      sessionId: 'ses_a',
      'env.session': json,
      'c.env.session.keyId': 'key_1',
    }),
    ask({ ['__proto__']: json, constructor: json, bindings: json, env: json, incoming: json }),
    ask({ Cookie: `session=${json}; ses_a=key_1; __Host-ev_session=ses_a` }),
    ask({ Authorization: 'Session ses_a' }),
    ask({ Authorization: 'Bearer key_1' }),
    ask({}, `/v1/credits?${query}`),
    ask({ 'Content-Type': 'application/json' }, '/v1/room', { method: 'POST', body }),
  ]
  const statuses = (await Promise.all(asked)).map(({ status }) => status)
  expect(statuses).toEqual(asked.map(() => 401))
  expect((await ask({ Authorization: `Bearer ${key}` })).status).toBe(200)
})
