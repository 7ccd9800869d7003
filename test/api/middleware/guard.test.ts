import { EventEmitter } from 'node:events'
import { describe, expect, test } from 'vitest'
import { VERIFYING_ACCOUNT_MAX, VERIFYING_MAX } from '../../../src/api/capacity.ts'
import { DAY, SECOND } from '../../../src/platform/clock.ts'
import { Priority } from '../../../src/platform/priority.ts'
import { fakeClock } from '../../support/clock.ts'
import { addGuardedRoute, codeOf, limitOf } from '../../support/guarded-route.ts'
import { createTestService } from '../../support/service.ts'

async function guarded(
  rule: Parameters<typeof addGuardedRoute>[2] = {},
  o: Parameters<typeof createTestService>[0] = {},
) {
  const h = await createTestService(o)
  addGuardedRoute(h, '/v1/room', rule)
  const ask = (options: Parameters<typeof h.request>[1] = {}) =>
    h.request('/v1/room', { body: {}, ...options })
  return { ...h, ask }
}

describe('a caller without a valid key', () => {
  test('gets the same response, whatever is wrong', async () => {
    const h = await guarded()
    const elsewhere = await createTestService()
    const unknown = await elsewhere.addKey()
    const answers = await Promise.all([
      h.ask({ key: null }),
      h.ask({ key: '' }),
      h.ask({ key: 'nonsense' }),
      h.ask({ key: `${h.key.slice(0, -1)}~` }),
      h.ask({ key: unknown }),
      h.ask({ key: null, headers: { Authorization: h.key } }),
      h.ask({ key: null, headers: { Authorization: `Basic ${btoa(`${h.key}:`)}` } }),
      h.ask({ key: null, headers: { 'X-API-Key': h.key } }),
      h.request(`/v1/room?api_key=${h.key}`, { key: null, body: {} }),
    ])
    const described = await Promise.all(
      answers.map(async answer => {
        const { request_id, ...body } = (await answer.json()) as Record<string, unknown>
        expect(request_id).toBe(answer.headers.get('X-Request-Id'))
        return [answer.status, answer.headers.get('WWW-Authenticate'), body]
      }),
    )
    expect(new Set(described.map(one => JSON.stringify(one))).size).toBe(1)
    expect(described[0]).toEqual([
      401,
      'Bearer',
      {
        success: false,
        error: 'Missing or invalid API key. Send the header Authorization: Bearer <API_KEY>.',
        code: 'authentication_error',
        reason: 'key_missing',
        remedy: 'Send the header Authorization: Bearer <API_KEY>.',
      },
    ])
  })

  test('learns that a key has expired, was replaced or was revoked', async () => {
    const h = await guarded()
    const code = async (key: string) => {
      const answer = await h.ask({ key })
      return [answer.status, ((await answer.json()) as { code: string }).code]
    }
    expect(await code(await h.addKey({ expiresAt: h.clock.now() }))).toEqual([401, 'key_expired'])
    const revoked = await h.addKey({ id: 'key_gone' })
    await h.request('/v1/keys/key_gone', { method: 'DELETE' })
    expect(await code(revoked)).toEqual([401, 'key_revoked'])
    const replaced = await h.addKey({ id: 'key_old' })
    await h.json('/v1/keys/key_old/rotate', { body: { grace_period_seconds: 1 } })
    await h.clock.advance(1_000)
    expect(await code(replaced)).toEqual([401, 'key_expired'])
  })

  test('is refused before the body is read', async () => {
    const { ask } = await guarded()
    expect((await ask({ key: null, body: '{' })).status).toBe(401)
  })

  test('counts in no limit', async () => {
    const { ask } = await guarded({ counts: 'single' })
    for (let n = 0; n < 3; n++) {
      expect(limitOf(await ask({ key: null }))).toMatchObject({ limit: 100, remaining: 100 })
    }
  })
})

describe('a key', () => {
  test('is accepted with its scheme in any case', async () => {
    const { ask, key } = await guarded()
    const answer = await ask({ key: null, headers: { Authorization: `bearer  ${key}` } })
    expect(answer.status).toBe(200)
  })

  test('that was revoked is refused at once, even if it was just used', async () => {
    const { ask, request } = await guarded()
    expect((await ask()).status).toBe(200)
    await request('/v1/keys/key_1?force=true', { method: 'DELETE' })
    expect((await ask()).status).toBe(401)
  })

  test('that is rotated has two secrets until its grace period ends', async () => {
    const { ask, json, clock, key: old } = await guarded()
    const rotated = await json('/v1/keys/key_1/rotate', { body: { grace_period_seconds: 60 } })
    const { key } = rotated.data as { key: string }
    const statuses = async () => [(await ask({ key: old })).status, (await ask({ key })).status]
    expect(await statuses()).toEqual([200, 200])
    await clock.advance(60_000)
    expect(await statuses()).toEqual([401, 200])
  })

  test('expires', async () => {
    const { ask, addKey, clock } = await guarded()
    const key = await addKey({ expiresAt: clock.now() + DAY })
    expect((await ask({ key })).status).toBe(200)
    await clock.advance(DAY)
    expect((await ask({ key })).status).toBe(401)
  })

  test('is refused from other IP addresses than the allowed ones', async () => {
    const { ask, addKey } = await guarded()
    const key = await addKey({ allowedIps: ['203.0.113.0/24'] })
    expect((await ask({ key, ip: '203.0.113.9' })).status).toBe(200)
    const answer = await ask({ key, ip: '192.0.2.1' })
    expect(answer.status).toBe(403)
    expect(await answer.json()).toMatchObject({
      code: 'ip_restricted',
      error: expect.stringContaining('192.0.2.1'),
    })
  })

  test('cannot claim another IP address by a header', async () => {
    const { ask, addKey } = await guarded()
    const key = await addKey({ allowedIps: ['203.0.113.0/24'] })
    const headers = { 'X-Forwarded-For': '203.0.113.9' }
    expect((await ask({ key, headers })).status).toBe(403)
    const proxied = await guarded({}, { settings: { trustProxy: ['192.0.2.0/24'] } })
    const other = await proxied.addKey({ allowedIps: ['203.0.113.0/24'] })
    expect((await proxied.ask({ key: other, headers })).status).toBe(200)
  })

  test('is refused on other web sites than the allowed ones', async () => {
    const { ask, addKey } = await guarded()
    const key = await addKey({ allowedDomains: ['shop.test'] })
    const from = async (headers: Record<string, string>) => (await ask({ key, headers })).status
    expect(await from({ Origin: 'https://shop.test' })).toBe(200)
    expect(await from({ Referer: 'https://www.shop.test/page' })).toBe(200)
    expect(await from({ Origin: 'https://evil.test' })).toBe(403)
    expect(await from({ Origin: 'https://evil.test', Referer: 'https://shop.test/' })).toBe(403)
    expect(await from({})).toBe(403)
    const errorOf = async (headers: Record<string, string>) =>
      await (await ask({ key, headers })).json()
    expect(await errorOf({ Origin: 'https://evil.test' })).toMatchObject({
      code: 'domain_restricted',
      error: expect.stringContaining('https://evil.test'),
    })
    expect(await errorOf({})).toMatchObject({
      code: 'domain_restricted',
      error: expect.stringContaining('no Origin or Referer'),
    })
  })

  test('allows what its scopes name, and nothing else', async () => {
    const { ask, addKey } = await guarded({ scope: 'jobs:write' })
    const status = async (...scopes: string[]) =>
      (await ask({ key: await addKey({ scopes: scopes as [] }) })).status
    expect(await status('jobs:write')).toBe(200)
    expect(await status('*')).toBe(200)
    expect(await status('jobs:read', 'verify:bulk')).toBe(403)
    const answer = await ask({ key: await addKey({ scopes: [] }) })
    expect(await answer.json()).toMatchObject({
      code: 'insufficient_scope',
      error: 'This API key does not have the scope jobs:write.',
    })
  })

  test('has the time of its last use', async () => {
    const { ask, json, clock, addKey } = await guarded()
    await ask({ key: await addKey({ id: 'key_used' }) })
    await clock.advance(20_000)
    expect(await json('/v1/keys/key_used')).toMatchObject({
      data: { last_used_at: '2026-06-01T12:00:00.000Z' },
    })
  })
})

describe('the sandbox', () => {
  test('is on if the header is true, and off if it is false or missing', async () => {
    const { ask } = await guarded()
    const on = async (value?: string) => {
      const answer = await ask({ headers: value === undefined ? {} : { 'X-EV-Sandbox': value } })
      return ((await answer.json()) as { sandbox: boolean }).sandbox
    }
    expect([await on('true'), await on('TRUE'), await on('false'), await on()]).toEqual([
      true,
      true,
      false,
      false,
    ])
  })

  test('is not left because of a misspelled header', async () => {
    const { ask } = await guarded()
    const answer = await ask({ headers: { 'X-EV-Sandbox': '1' } })
    expect([answer.status, await codeOf(answer)]).toEqual([400, 'invalid_request'])
  })

  test('counts like any other request, and shows constant limits', async () => {
    const { ask, clock } = await guarded({ counts: 'single' }, { plan: 'free' })
    const headers = { 'X-EV-Sandbox': 'true' }
    for (let n = 0; n < 9; n++) {
      const answer = await ask({ headers })
      expect(answer.status).toBe(200)
      expect(limitOf(answer)).toEqual({
        limit: 100,
        remaining: 99,
        reset: Math.ceil((clock.now() + 60_000) / 1_000),
      })
    }
    expect(limitOf(await ask())).toMatchObject({ limit: 10, remaining: 0 })
    const refused = await ask({ headers })
    expect([refused.status, await codeOf(refused)]).toEqual([429, 'rate_limit'])
    expect(refused.headers.get('Retry-After')).toBe('60')
    expect(limitOf(refused)).toMatchObject({ limit: 10, remaining: 0 })
  })

  test('still needs a key', async () => {
    const { ask } = await guarded()
    expect((await ask({ key: null, headers: { 'X-EV-Sandbox': 'true' } })).status).toBe(401)
  })

  test('does not simulate the management of keys', async () => {
    const { ask } = await guarded({ scope: 'keys:write' })
    const answer = await ask({ headers: { 'X-EV-Sandbox': 'true' } })
    expect(await answer.json()).toMatchObject({ sandbox: false })
  })
})

/** Requests with a key that arrive on new connections, before the app. */
function arrivals({ admission }: Pick<Awaited<ReturnType<typeof guarded>>, 'admission'>) {
  return (secret: string, url = '/v1/verify/single') => {
    const response = new EventEmitter()
    const headers = { authorization: `Bearer ${secret}` }
    const request = { method: 'POST', url, headers, socket: {} }
    return { error: admission(request, response, () => {}), response }
  }
}

describe('an overload', () => {
  /** A route whose requests wait, and a function that starts some of an account. */
  async function waitingRoute() {
    const waiting: (() => void)[] = []
    const handler = (c: { json(body: object): Response }) =>
      new Promise<Response>(resolve => waiting.push(() => resolve(c.json({}))))
    const settings = { limits: false }
    const h = await guarded({ counts: 'single', handler: handler as never }, { settings })
    await h.addAccount('acc_2')
    const other = await h.addKey({ id: 'key_2', accountId: 'acc_2' })
    let started = 0
    const start = async (count: number, key?: string) => {
      const asked = Array.from({ length: count }, () => h.ask(key === undefined ? {} : { key }))
      started += count
      while (waiting.length < started) await new Promise(setImmediate)
      return asked
    }
    return { ...h, waiting, other, start }
  }

  test('is refused at once, until a verification is done', async () => {
    const { ask, waiting, other, start } = await waitingRoute()
    const running = [
      ...(await start(VERIFYING_ACCOUNT_MAX)),
      ...(await start(VERIFYING_MAX - VERIFYING_ACCOUNT_MAX, other)),
    ]
    const refused = await ask({ key: other })
    expect([refused.status, await codeOf(refused)]).toEqual([503, 'service_unavailable'])
    expect(refused.headers.get('Retry-After')).toBe('1')
    waiting[0]?.()
    await running[0]
    const [next] = await start(1)
    for (const end of waiting) end()
    expect((await next)?.status).toBe(200)
    await Promise.all(running)
  })

  test('of one account leaves places for others', async () => {
    const { ask, waiting, other, start } = await waitingRoute()
    const running = await start(VERIFYING_ACCOUNT_MAX)
    const refused = await ask()
    expect([refused.status, await codeOf(refused)]).toEqual([429, 'rate_limit'])
    const [next] = await start(1, other)
    for (const end of waiting) end()
    expect((await next)?.status).toBe(200)
    await Promise.all(running)
  })

  test('of one account is refused without the app after the first refusal, for a second', async () => {
    const { ask, waiting, key, other, start, clock, ...rest } = await waitingRoute()
    const arrive = arrivals(rest)
    const overload = (secret: string, url?: string) => {
      const { error, response } = arrive(secret, url)
      response.emit('close')
      return error
    }
    const running = await start(VERIFYING_ACCOUNT_MAX)
    expect(overload(key)).toBeNull()
    await ask()
    expect(overload(key)).toMatchObject({ code: 'rate_limit', retryAfterS: 1 })
    expect([overload(other), overload(key, '/v1/jobs')]).toEqual([null, null])
    // A tool of an agent may verify addresses too.
    expect(overload(key, '/mcp')).toMatchObject({ code: 'rate_limit' })
    await clock.advance(SECOND + 1)
    expect(overload(key)).toBeNull()
    await ask()
    waiting[0]?.()
    await running[0]
    expect(overload(key)).toBeNull()
    for (const end of waiting) end()
    await Promise.all(running)
  })

  test('of new connections waits before the app, and is refused beyond the same numbers', async () => {
    const arrive = arrivals(await guarded())
    const codesOf = (secret: string, count: number) =>
      Array.from({ length: count }, () => arrive(secret).error?.code ?? null)
    const nulls = (count: number) => Array.from({ length: count }, () => null)
    expect(codesOf('a', VERIFYING_ACCOUNT_MAX)).toEqual(nulls(VERIFYING_ACCOUNT_MAX))
    expect(codesOf('a', 2)).toEqual(['rate_limit', 'rate_limit'])
    const rest = VERIFYING_MAX - VERIFYING_ACCOUNT_MAX
    expect(codesOf('b', rest - 1)).toEqual(nulls(rest - 1))
    const last = arrive('b')
    expect([last.error, ...codesOf('b', 1)]).toEqual([null, 'service_unavailable'])
    last.response.emit('close')
    expect(codesOf('c', 2)).toEqual([null, 'service_unavailable'])
  })

  test('does not affect reads', async () => {
    const { ask } = await guarded()
    expect((await ask()).status).toBe(200)
  })
})

test('while the service stops, requests on open connections are answered', async () => {
  const h = await createTestService()
  addGuardedRoute(h, '/v1/room')
  h.stop()
  expect((await h.request('/v1/room', { body: {} })).status).toBe(200)
  expect((await h.request('/livez')).status).toBe(200)
  const notReady = await h.request('/readyz')
  expect([notReady.status, await codeOf(notReady)]).toEqual([503, 'service_unavailable'])
  expect(notReady.headers.get('Retry-After')).toBe('5')
})

describe('lists yield', () => {
  test.each([
    ['while one address is verified', 'single', true],
    ['not while a list is accepted', 'bulk', false],
    ['not during reads', null, false],
  ] as const)('%s', async (_, counts, expected) => {
    const seen: boolean[] = []
    const h = await guarded(
      {
        counts,
        handler: async c => {
          seen.push(h.service.priority.hasRequests)
          if (c.req.query('broken') !== undefined) throw new Error('broken')
          return c.json({})
        },
      },
      { deps: { priority: new Priority(fakeClock()) } },
    )
    await h.ask()
    await h.request('/v1/room?broken', { body: {} })
    expect(seen).toEqual([expected, expected])
  })

  test('to no request that has ended', async () => {
    const clock = fakeClock()
    const priority = new Priority(clock)
    const h = await guarded({ counts: 'single' }, { deps: { priority } })
    await Promise.all([h.ask(), h.ask(), h.request('/v1/room', { body: '{' })])
    await clock.advance(SECOND)
    expect(priority.hasRequests).toBe(false)
  })
})
