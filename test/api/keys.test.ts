import { describe, expect, test } from 'vitest'
import { isWellFormed } from '../../src/accounts/key.ts'
import type { Scope } from '../../src/accounts/key-rights.ts'
import { DAY, SECOND } from '../../src/platform/clock.ts'
import { createTestDashboard } from '../support/dashboard.ts'
import { createTestService } from '../support/service.ts'

const NEW = { name: 'CI', scopes: ['jobs:read'] }

describe('creating a key', () => {
  test('shows its secret once, and the stored key', async () => {
    const { request, json } = await createTestService()
    const response = await request('/v1/keys', {
      body: {
        name: ' CI ',
        scopes: ['verify:single', 'verify:bulk', 'verify:bulk'],
        allowed_ips: ['203.0.113.0/24', '2001:DB8::1'],
        allowed_domains: ['App.Example.com'],
        rate_limit_per_minute: 60,
        expires_at: '2026-06-02T14:00:00+02:00',
      },
    })
    expect(response.status).toBe(201)
    const { data } = (await response.json()) as { data: { key: string; id: string } }
    expect(data).toEqual({
      id: expect.stringMatching(/^key_[a-z0-9]{16}$/),
      name: 'CI',
      key: data.key,
      prefix: data.key.slice(0, 12),
      hint: data.key.slice(-4),
      publishable: false,
      test: false,
      scopes: ['verify:single', 'verify:bulk'],
      allowed_ips: ['203.0.113.0/24', '2001:db8::1'],
      allowed_domains: ['app.example.com'],
      rate_limit_per_minute: 60,
      created_at: '2026-06-01T12:00:00.000Z',
      expires_at: '2026-06-02T12:00:00.000Z',
      last_used_at: null,
    })
    expect(isWellFormed(data.key)).toBe(true)
    expect(response.headers.get('Location')).toBe(`/v1/keys/${data.id}`)
    const { key: _, ...kept } = data
    expect((await json('/v1/keys')).data).toEqual({
      keys: expect.arrayContaining([expect.objectContaining({ id: 'key_1' }), kept]),
      total: 2,
    })
  })

  test('makes its scopes available from the next request on', async () => {
    const { request, json } = await createTestService()
    const { data } = (await json('/v1/keys', { body: NEW })) as { data: { key: string } }
    expect((await request('/v1/jobs', { key: data.key })).status).toBe(200)
    expect((await request('/v1/credits', { key: data.key })).status).toBe(403)
  })

  test('stores its secret nowhere in the database', async () => {
    const { json, database } = await createTestService()
    const headers = { 'Idempotency-Key': 'one' }
    const { data } = (await json('/v1/keys', { body: NEW, headers })) as { data: { key: string } }
    for (const table of ['api_key', 'key_secret', 'replay'] as const) {
      const rows = await database.db.selectFrom(table).selectAll().execute()
      expect(rows).not.toEqual([])
      expect(JSON.stringify(rows)).not.toContain(data.key)
    }
  })

  test('twice under one Idempotency-Key creates one', async () => {
    const { request, json } = await createTestService()
    const ask = () => request('/v1/keys', { body: NEW, headers: { 'Idempotency-Key': 'one' } })
    const [first, again] = [await ask(), await ask()]
    expect([first.status, again.status]).toEqual([201, 201])
    expect(again.headers.get('Location')).toBe(first.headers.get('Location'))
    expect(await again.json()).toEqual(await first.json())
    expect((await json('/v1/keys')).data).toMatchObject({ total: 2 })
  })

  test.each<[string, object, RegExp]>([
    ['no name', { scopes: ['jobs:read'] }, /"name"/],
    ['a blank name', { ...NEW, name: ' ' }, /"name"/],
    ['no scopes', { name: 'CI' }, /"scopes"/],
    ['an empty list of scopes', { ...NEW, scopes: [] }, /"scopes"/],
    ['an unknown scope', { ...NEW, scopes: ['jobs:erase'] }, /"scopes\[0\]".*jobs:write/],
    ['an invalid range', { ...NEW, allowed_ips: ['10.0.0.0/33'] }, /"allowed_ips\[0\]".*CIDR/],
    ['a name as an address', { ...NEW, allowed_ips: ['app.example'] }, /"allowed_ips\[0\]"/],
    ['a URL as a domain', { ...NEW, allowed_domains: ['https://a.example'] }, /a domain, such as/],
    [
      'an expiry in the past',
      { ...NEW, expires_at: '2026-06-01T11:59:59Z' },
      /^"expires_at" is .* in the future\.$/,
    ],
    ['an expiry that is not a time', { ...NEW, expires_at: 'tomorrow' }, /"expires_at"/],
    [
      'an expiry without a time zone',
      { ...NEW, expires_at: '2026-06-02T12:00:00' },
      /"expires_at"/,
    ],
    ['a rate of zero', { ...NEW, rate_limit_per_minute: 0 }, /"rate_limit_per_minute"/],
    ['a misspelled restriction', { ...NEW, allowed_ip: ['203.0.113.1'] }, /allowed_ip/],
    ['too many addresses', { ...NEW, allowed_ips: Array(101).fill('203.0.113.1') }, /100/],
  ])('rejects %s', async (_, body, reason) => {
    const { request, json } = await createTestService()
    const response = await request('/v1/keys', { body })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({
      code: 'invalid_request',
      error: expect.stringMatching(reason),
    })
    expect((await json('/v1/keys')).data).toMatchObject({ total: 1 })
  })
})

describe('a key that may write keys', () => {
  test('grants no scope that it lacks', async () => {
    const { request, addKey } = await createTestService()
    const key = await addKey({ scopes: ['keys:write', 'jobs:read'] })
    for (const scopes of [['jobs:write'], ['*'], ['jobs:read', 'verify:bulk']]) {
      const response = await request('/v1/keys', { key, body: { name: 'more', scopes } })
      expect(response.status).toBe(403)
      expect(await response.json()).toMatchObject({ code: 'insufficient_scope' })
    }
    const scopes = ['jobs:read', 'keys:write']
    expect((await request('/v1/keys', { key, body: { name: 'less', scopes } })).status).toBe(201)
  })

  const restricted = {
    scopes: ['keys:write', 'jobs:read'] as Scope[],
    allowedIps: ['192.0.2.0/24'],
    allowedDomains: ['example.com'],
    rateLimitPerMinute: 60,
    expiresAt: Date.parse('2026-06-02T12:00:00Z'),
  }
  const from = { ip: '192.0.2.1', headers: { Origin: 'https://example.com' } }

  test.each([
    ['scopes', { scopes: ['*'] }],
    ['allowed_ips', { allowed_ips: [] }],
    ['allowed_ips', { allowed_ips: ['192.0.0.0/16'] }],
    ['allowed_domains', { allowed_domains: [] }],
    ['rate_limit_per_minute', { rate_limit_per_minute: null }],
    ['rate_limit_per_minute', { rate_limit_per_minute: 61 }],
    ['expires_at', { expires_at: null }],
    ['expires_at', { expires_at: '2026-06-02T12:00:01Z' }],
  ])('grants neither itself nor a new key more in %s: %j', async (right, wider) => {
    const { request, json, addKey } = await createTestService()
    const key = await addKey({ id: 'key_small', ...restricted })
    const asked = [
      request('/v1/keys/key_small', { method: 'PATCH', key, body: wider, ...from }),
      request('/v1/keys', { key, body: { ...NEW, ...wider }, ...from }),
    ]
    for (const response of await Promise.all(asked)) {
      expect(response.status).toBe(403)
      expect(await response.json()).toMatchObject({
        code: 'insufficient_scope',
        error: expect.stringContaining(right),
      })
    }
    const { keys } = (await json('/v1/keys')).data as { keys: object[] }
    expect(keys).toHaveLength(2)
    expect(keys).toContainEqual(expect.objectContaining(SMALL))
  })

  const SMALL = {
    id: 'key_small',
    scopes: ['keys:write', 'jobs:read'],
    allowed_ips: ['192.0.2.0/24'],
    allowed_domains: ['example.com'],
    rate_limit_per_minute: 60,
    expires_at: '2026-06-02T12:00:00.000Z',
  }

  test('passes its own restrictions on to a new key by default', async () => {
    const { json, addKey } = await createTestService()
    const key = await addKey({ id: 'key_small', ...restricted })
    const { id: _, scopes: __, ...restrictions } = SMALL
    expect((await json('/v1/keys', { key, body: NEW, ...from })).data).toMatchObject(restrictions)
    const narrower = { allowed_ips: ['192.0.2.7'], rate_limit_per_minute: 1 }
    expect(
      (await json('/v1/keys/key_small', { method: 'PATCH', key, body: narrower, ...from })).data,
    ).toMatchObject({ ...SMALL, ...narrower })
  })

  test.each(['scopes', 'allowedIps', 'allowedDomains', 'rateLimitPerMinute', 'expiresAt'] as const)(
    'cannot change a key that has more rights in %s',
    async right => {
      const { request, addKey } = await createTestService()
      const all = {
        scopes: ['*'] as Scope[],
        allowedIps: [],
        allowedDomains: [],
        rateLimitPerMinute: null,
        expiresAt: null,
      }
      const target = await addKey({ id: 'key_b', ...all })
      const key = await addKey({ ...all, [right]: restricted[right] })
      const asked = [
        request('/v1/keys/key_b', { method: 'PATCH', key, body: { name: 'mine' }, ...from }),
        request('/v1/keys/key_b', { method: 'DELETE', key, ...from }),
        request('/v1/keys/key_b/rotate', { key, body: {}, ...from }),
      ]
      expect((await Promise.all(asked)).map(({ status }) => status)).toEqual([403, 403, 403])
      expect((await request('/v1/jobs', { key: target })).status).toBe(200)
    },
  )

  test('manages no key with a secret that expires before that key, its own included', async () => {
    const { request, json, addKey } = await createTestService()
    const old = await addKey({ id: 'key_b' })
    await json('/v1/keys/key_b/rotate', { body: { grace_period_seconds: 3_600 } })
    expect((await request('/v1/keys/key_b/rotate', { key: old, body: {} })).status).toBe(403)
    const made = await json('/v1/keys', { key: old, body: NEW })
    expect(made.data).toMatchObject({ expires_at: '2026-06-01T13:00:00.000Z' })
  })

  test('is needed for every endpoint of keys', async () => {
    const { request, addKey } = await createTestService()
    const key = await addKey({ scopes: ['account:read', 'jobs:write'] })
    const paths: [string, string][] = [
      ...[
        ['GET', '/v1/keys'],
        ['POST', '/v1/keys'],
        ['GET', '/v1/keys/key_1'],
        ['PATCH', '/v1/keys/key_1'],
      ],
      ...[
        ['DELETE', '/v1/keys/key_1'],
        ['POST', '/v1/keys/key_1/rotate'],
      ],
    ] as [string, string][]
    for (const [method, path] of paths) {
      expect((await request(path, { method, key })).status).toBe(403)
    }
  })
})

describe('one key', () => {
  test('is shown as in the list', async () => {
    const { json } = await createTestService()
    const { keys } = (await json('/v1/keys')).data as { keys: object[] }
    expect((await json('/v1/keys/key_1')).data).toEqual(keys[0])
  })

  test('of another account, or revoked, returns 404', async () => {
    const { request, addKey } = await createTestService()
    await addKey({ id: 'key_b' })
    await request('/v1/keys/key_b', { method: 'DELETE' })
    for (const id of ['key_b', 'key_none']) {
      expect((await request(`/v1/keys/${id}`)).status).toBe(404)
    }
  })
})

describe('changing a key', () => {
  test('applies at once, to the named fields only', async () => {
    const { request, json, addKey } = await createTestService()
    const key = await addKey({ id: 'key_b', name: 'b', allowedIps: ['203.0.113.1'] })
    expect((await request('/v1/jobs', { key })).status).toBe(403)
    const body = { allowed_ips: [], rate_limit_per_minute: 5 }
    const patched = await json('/v1/keys/key_b', { method: 'PATCH', body })
    expect(patched.data).toMatchObject({
      id: 'key_b',
      name: 'b',
      scopes: ['*'],
      allowed_ips: [],
      rate_limit_per_minute: 5,
    })
    expect((await request('/v1/jobs', { key })).status).toBe(200)
    const off = { method: 'PATCH', body: { rate_limit_per_minute: null, expires_at: null } }
    expect((await json('/v1/keys/key_b', off)).data).toMatchObject({ rate_limit_per_minute: null })
  })

  test.each([{ name: '' }, { scopes: [] }, { expires_at: '2020-01-01T00:00:00Z' }, { key: 'x' }])(
    'rejects %j',
    async body => {
      const { request } = await createTestService()
      const response = await request('/v1/keys/key_1', { method: 'PATCH', body })
      expect(response.status).toBe(400)
    },
  )
})

describe('rotating a key', () => {
  test('issues a new secret; both work until the grace period ends', async () => {
    const { request, addKey, clock } = await createTestService()
    const old = await addKey({ id: 'key_b' })
    const response = await request('/v1/keys/key_b/rotate', {
      body: { grace_period_seconds: 3_600 },
    })
    expect(response.status).toBe(200)
    const { data } = (await response.json()) as { data: { key: string } }
    expect(data).toMatchObject({
      id: 'key_b',
      prefix: data.key.slice(0, 12),
      hint: data.key.slice(-4),
      previous_key_expires_at: '2026-06-01T13:00:00.000Z',
    })
    const works = async (key: string) => (await request('/v1/jobs', { key })).status === 200
    expect([await works(old), await works(data.key)]).toEqual([true, true])
    await clock.advance(3_599_000)
    expect([await works(old), await works(data.key)]).toEqual([true, true])
    await clock.advance(2_000)
    expect([await works(old), await works(data.key)]).toEqual([false, true])
  })

  test('without a body has a grace period of a day', async () => {
    const { json, request, addKey, clock } = await createTestService()
    const old = await addKey({ id: 'key_b' })
    const rotated = await json('/v1/keys/key_b/rotate', { method: 'POST' })
    expect(rotated.data).toMatchObject({ previous_key_expires_at: '2026-06-02T12:00:00.000Z' })
    await clock.advance(DAY - 1_000)
    expect((await request('/v1/jobs', { key: old })).status).toBe(200)
    await clock.advance(2_000)
    expect((await request('/v1/jobs', { key: old })).status).toBe(401)
  })

  test('without a grace period ends the old secret at once', async () => {
    const { json, request, addKey } = await createTestService()
    const old = await addKey({ id: 'key_b' })
    await json('/v1/keys/key_b/rotate', { body: { grace_period_seconds: 0 } })
    expect((await request('/v1/jobs', { key: old })).status).toBe(401)
  })

  test.each([-1, 604_801, 1.5, '60'])('rejects a grace period of %j', async grace => {
    const { request } = await createTestService()
    const body = { grace_period_seconds: grace }
    expect((await request('/v1/keys/key_1/rotate', { body })).status).toBe(400)
  })
})

describe('deleting a key', () => {
  test('revokes it at once, and it is no longer listed', async () => {
    const { request, json, addKey } = await createTestService()
    const key = await addKey({ id: 'key_b' })
    expect((await request('/v1/jobs', { key })).status).toBe(200)
    const deleted = await request('/v1/keys/key_b', { method: 'DELETE' })
    expect(deleted.status).toBe(204)
    expect((await request('/v1/jobs', { key })).status).toBe(401)
    expect((await json('/v1/keys')).data).toMatchObject({ total: 1 })
    expect((await request('/v1/keys/key_b', { method: 'DELETE' })).status).toBe(404)
  })

  test('may be done with the key itself', async () => {
    const { request, addKey } = await createTestService()
    await addKey()
    expect((await request('/v1/keys/key_1', { method: 'DELETE' })).status).toBe(204)
    expect((await request('/v1/keys')).status).toBe(401)
  })

  test('is refused with last_key if no other key is active, unless forced', async () => {
    const { request, addKey, addAccount, clock } = await createTestService()
    await addAccount('acc_2')
    await addKey({ accountId: 'acc_2' })
    await addKey({ id: 'key_expired', expiresAt: clock.now() })
    await addKey({ id: 'key_revoked' })
    const remove = (path: string) => request(`/v1/keys/${path}`, { method: 'DELETE' })
    expect((await remove('key_revoked')).status).toBe(204)
    for (const path of ['key_1', 'key_1?force=false']) {
      const refused = await remove(path)
      expect([refused.status, await refused.json()]).toEqual([
        409,
        expect.objectContaining({ code: 'last_key', error: expect.stringContaining('force=true') }),
      ])
    }
    expect((await request('/v1/keys')).status).toBe(200)
    expect((await remove('key_expired')).status).toBe(204)
    expect((await remove('key_1?force=true')).status).toBe(204)
    expect((await request('/v1/keys')).status).toBe(401)
  })

  test('of the last two keys at the same time leaves one', async () => {
    const { request, addKey } = await createTestService()
    await addKey({ id: 'key_2' })
    const remove = (id: string) => request(`/v1/keys/${id}`, { method: 'DELETE' })
    const answers = await Promise.all([remove('key_1'), remove('key_2')])
    expect(answers.map(({ status }) => status).toSorted()).toEqual([204, 409])
  })
})

test('a key is read from the database once a second', async () => {
  const { request, database, clock } = await createTestService()
  const status = async () => (await request('/v1/keys')).status
  expect(await status()).toBe(200)
  // As another process does, without notifying this one.
  await database.db.updateTable('api_key').set({ revoked_at: clock.now() }).execute()
  await database.db.deleteFrom('key_secret').execute()
  await clock.advance(SECOND - 1)
  expect(await status()).toBe(200)
  await clock.advance(1)
  expect(await status()).toBe(401)
})

describe('a session of a key', () => {
  /** A service with two browsers that signed in with `key_b` and one with `key_1`. */
  async function withSessions() {
    const h = await createTestDashboard({ signIn: false })
    const browsers: ReadonlyMap<string, string>[] = []
    for (const key of [await h.addKey({ id: 'key_b' }), h.key]) {
      for (let n = key === h.key ? 1 : 0; n < 2; n++) {
        h.cookies.clear()
        await h.signIn(key)
        browsers.push(new Map(h.cookies))
      }
    }
    /** Continues in one of the browsers. */
    const use = (browser: number) => {
      h.cookies.clear()
      for (const [name, value] of browsers[browser] ?? []) h.cookies.set(name, value)
    }
    /** The browsers that are still signed in. */
    const left = async () => {
      const found: number[] = []
      for (const browser of browsers.keys()) {
        use(browser)
        if ((await h.get('/sessions')).status === 200) found.push(browser)
      }
      return found
    }
    const post = (browser: number, path: string, fields = {}) => {
      use(browser)
      return h.post(path, fields)
    }
    return { ...h, left, post }
  }

  test('is signed out when the key is rotated, except the session that does it', async () => {
    const { post, request, left } = await withSessions()
    expect(await left()).toEqual([0, 1, 2])
    expect((await post(1, '/keys/key_b/rotate', { grace: '0' })).status).toBe(200)
    expect(await left()).toEqual([1, 2])
    expect((await request('/v1/keys/key_b/rotate', { method: 'POST' })).status).toBe(200)
    expect(await left()).toEqual([2])
  })

  test('is signed out when the key is rotated from the session of another key', async () => {
    const { post, left } = await withSessions()
    expect((await post(2, '/keys/key_b/rotate', { grace: '0' })).status).toBe(200)
    expect(await left()).toEqual([2])
  })

  test('is signed out when the key is deleted, even by that session', async () => {
    const { post, left } = await withSessions()
    expect((await post(0, '/keys/key_b/revoke')).status).toBe(303)
    expect(await left()).toEqual([2])
  })

  test('is signed out when the key may no longer sign in', async () => {
    const { request, left } = await withSessions()
    const patch = (scopes: string[]) =>
      request('/v1/keys/key_b', { method: 'PATCH', body: { scopes } })
    expect((await patch(['dashboard', 'account:read'])).status).toBe(200)
    expect(await left()).toEqual([0, 1, 2])
    expect((await patch(['account:read'])).status).toBe(200)
    expect(await left()).toEqual([2])
    // Nor do the sessions come back with the scope.
    expect((await patch(['dashboard', 'account:read'])).status).toBe(200)
    expect(await left()).toEqual([2])
  })
})

describe('a publishable key', () => {
  const FORM = { name: 'Form', publishable: true, allowed_domains: ['shop.example.com'] }

  test('is created without scopes, and shown as publishable', async () => {
    const { json } = await createTestService()
    const shown = {
      publishable: true,
      scopes: ['verify:form'],
      rate_limit_per_minute: 120,
      prefix: expect.stringMatching(/^ev_pub_\w{4}$/),
      allowed_domains: ['shop.example.com'],
    }
    const { data } = (await json('/v1/keys', { body: FORM })) as { data: { id: string } }
    expect(data).toMatchObject({ ...shown, key: expect.stringMatching(/^ev_pub_\w{38}$/) })
    expect((await json(`/v1/keys/${data.id}`)).data).toMatchObject(shown)
    const { keys } = (await json('/v1/keys')).data as { keys: object[] }
    expect(keys).toContainEqual(expect.objectContaining(shown))
  })

  test.each([
    [
      'with scopes',
      { scopes: ['*'] },
      '"scopes" is ["*"]; it must be omitted if "publishable" is true.',
    ],
    ['without domains', { allowed_domains: [] }, /^"allowed_domains" is empty; a publishable key/],
    [
      'that is secret without scopes',
      { publishable: false },
      '"scopes" is missing; it must be an array unless "publishable" is true.',
    ],
    [
      'that is secret with its scope',
      { publishable: false, scopes: ['verify:form'] },
      /^"scopes\[0\]" is "verify:form"; it must be one of verify:single/,
    ],
  ])('is refused %s', async (_, more, error) => {
    const { request } = await createTestService()
    const response = await request('/v1/keys', { body: { ...FORM, ...more } })
    expect([response.status, await response.json()]).toEqual([
      400,
      expect.objectContaining({
        code: 'invalid_request',
        error: typeof error === 'string' ? error : expect.stringMatching(error),
      }),
    ])
  })

  test('keeps its scopes', async () => {
    const { json, request } = await createTestService()
    const { data } = (await json('/v1/keys', { body: FORM })) as { data: { id: string } }
    const patch = (body: object) => request(`/v1/keys/${data.id}`, { method: 'PATCH', body })
    expect((await patch({ name: 'Other' })).status).toBe(200)
    const refused = await patch({ scopes: ['*'] })
    expect([refused.status, await refused.json()]).toEqual([
      400,
      expect.objectContaining({ error: expect.stringContaining('"scopes" cannot be changed') }),
    ])
  })
})
