import { describe, expect, test } from 'vitest'
import { periodEnd } from '../../../src/accounts/plan.ts'
import { HOUR, MINUTE } from '../../../src/platform/clock.ts'
import { tempFolder } from '../../support/database.ts'
import { addGuardedRoute, codeOf, echoList, limitOf } from '../../support/guarded-route.ts'
import { users } from '../../support/recipients.ts'
import { createTestService } from '../../support/service.ts'

async function limited(o: Parameters<typeof createTestService>[0] = {}) {
  const h = await createTestService(o)
  addGuardedRoute(h, '/v1/single', { counts: 'single' })
  addGuardedRoute(h, '/v1/list', { counts: 'bulk', handler: echoList })
  addGuardedRoute(h, '/v1/read', { method: 'get' })
  const single = (options: Parameters<typeof h.request>[1] = {}) =>
    h.request('/v1/single', { body: {}, ...options })
  const list = (options: Parameters<typeof h.request>[1] = {}) =>
    h.request('/v1/list', { body: {}, ...options })
  return { ...h, single, list, read: () => h.request('/v1/read') }
}

/** How many of these concurrent requests are admitted. */
async function admitted(ask: () => Promise<Response>, times: number): Promise<number> {
  const answers = await Promise.all(Array.from({ length: times }, ask))
  return answers.filter(({ status }) => status === 200).length
}

describe('an IP address', () => {
  test('has exactly 100 single verifications a minute, however many are sent at once', async () => {
    const { single, clock } = await limited()
    expect(await admitted(single, 200)).toBe(100)
    await clock.advance(MINUTE)
    expect(await admitted(single, 200)).toBe(100)
  })

  test('has exactly 10 lists an hour', async () => {
    const { list, clock } = await limited()
    expect(await admitted(list, 64)).toBe(10)
    await clock.advance(HOUR - 1)
    expect(await admitted(list, 1)).toBe(0)
    await clock.advance(1)
    expect(await admitted(list, 64)).toBe(10)
  })

  test('is charged no list for a refused request, as the headers show', async () => {
    const { request, list } = await limited()
    const refused = [
      { body: '{' },
      { body: { emails: [] } },
      { body: {}, headers: { 'Content-Type': 'text/csv' } },
      { body: { emails: ['ann@a.test'] }, headers: { 'Idempotency-Key': 'ü' } },
    ]
    for (let n = 0; n < 12; n++) {
      const answer = await request('/v1/verify/bulk', refused[n % refused.length])
      expect(answer.status).toBeLessThan(429)
      // All lists are left, so the requests of the key are the closest to exhaustion.
      if (answer.status === 400) expect(limitOf(answer).limit).toBe(500)
    }
    expect(await admitted(list, 64)).toBe(10)
  })

  test('shares its limits over all keys, and another address has its own', async () => {
    const { list, addKey } = await limited()
    const other = await addKey()
    expect(await admitted(list, 10)).toBe(10)
    expect((await list({ key: other })).status).toBe(429)
    expect((await list({ ip: '192.0.2.2' })).status).toBe(200)
  })

  test('of IPv6 is counted by its /64', async () => {
    const { list } = await limited()
    for (let n = 0; n < 10; n++) expect((await list({ ip: `2001:db8::${n}` })).status).toBe(200)
    expect((await list({ ip: '2001:db8::ffff:0:1' })).status).toBe(429)
    expect((await list({ ip: '2001:db8:0:1::1' })).status).toBe(200)
  })

  test('cannot be changed by a header', async () => {
    const { list } = await limited()
    expect(await admitted(list, 10)).toBe(10)
    const headers = { 'X-Forwarded-For': '203.0.113.7', Forwarded: 'for=203.0.113.7' }
    expect((await list({ headers })).status).toBe(429)
  })
})

describe('a key', () => {
  test('has the requests of its plan, for all endpoints', async () => {
    const { read, single } = await limited({ plan: 'free' })
    expect(await admitted(single, 4)).toBe(4)
    expect(await admitted(read, 20)).toBe(6)
  })

  test('of a faster plan can be used again after a second', async () => {
    const { read, clock } = await limited({ plan: 'starter' })
    expect(await admitted(read, 20)).toBe(10)
    await clock.advance(1_000)
    expect(await admitted(read, 20)).toBe(10)
  })

  test('can have its own limit in addition', async () => {
    const { request, addKey } = await limited()
    const key = await addKey({ rateLimitPerMinute: 2 })
    expect(await admitted(() => request('/v1/read', { key }), 5)).toBe(2)
  })
})

describe('a refusal', () => {
  test('says which limit, until when, and after how long', async () => {
    const { read, clock } = await limited({ plan: 'free' })
    await admitted(read, 10)
    await clock.advance(18_500)
    const answer = await read()
    expect(answer.status).toBe(429)
    expect(answer.headers.get('Retry-After')).toBe('42')
    expect(limitOf(answer)).toEqual({
      limit: 10,
      remaining: 0,
      reset: Math.ceil((clock.now() + 41_500) / 1_000),
    })
    expect(await answer.json()).toMatchObject({
      success: false,
      code: 'rate_limit',
      error:
        'Rate limit exceeded: 10 requests a minute in your plan. Try again in 42 seconds. The admin of this service can change the plan with ev accounts set-plan, or the limit in "plans" of the config file.',
    })
  })

  test('counts in no other limit', async () => {
    const { list, single, read } = await limited()
    expect(await admitted(list, 10)).toBe(10)
    const before = limitOf(await read()).remaining
    for (let n = 0; n < 5; n++) expect((await list()).status).toBe(429)
    expect(limitOf(await read()).remaining).toBe(before - 1)
    expect((await single()).status).toBe(200)
  })

  test('names the first exhausted limit', async () => {
    const { list, addKey } = await limited()
    const key = await addKey({ rateLimitPerMinute: 10 })
    expect(await admitted(() => list({ key }), 10)).toBe(10)
    const answer = (await (await list({ key })).json()) as { error: string }
    expect(answer.error).toContain('10 requests a minute with this key')
    const { error } = (await (await list()).json()) as { error: string }
    expect(error).toBe(
      'Rate limit exceeded: 10 lists an hour from one IP address (192.0.2.1). Try again in 1 hour. The admin of this service can change "bulk-per-hour" of "ip-limits" in the config file.',
    )
  })
})

describe('the limit in the headers', () => {
  test('is the one with the smallest share left', async () => {
    const { list, single } = await limited({ plan: 'professional' })
    expect(limitOf(await single())).toMatchObject({ limit: 50, remaining: 49 })
    expect(limitOf(await list())).toMatchObject({ limit: 10, remaining: 9 })
    expect(limitOf(await single())).toMatchObject({ limit: 50, remaining: 47 })
  })

  test('is that of the IP address without a key, and reading it is free', async () => {
    const { single, request, headers } = await limited()
    await admitted(single, 3)
    for (let n = 0; n < 3; n++) {
      expect(limitOf(await request('/livez', { key: null }))).toMatchObject({ remaining: 97 })
    }
    expect(headers('192.0.2.1')).toMatchObject({ 'X-RateLimit-Remaining': '97' })
  })

  test('is shown if nothing is refused, too', async () => {
    const { single } = await limited({ plan: 'starter', settings: { limits: false } })
    expect(await admitted(single, 300)).toBe(300)
    expect(limitOf(await single())).toMatchObject({ limit: 100, remaining: 100 })
  })
})

describe('the credits of the day', () => {
  test('are shown when they are the closest to exhaustion, one less for a verification', async () => {
    const { single, read, submit, clock } = await limited({ plan: 'free' })
    await submit(users(90))
    expect(limitOf(await single())).toEqual({
      limit: 100,
      remaining: 9,
      reset: periodEnd(clock.now()) / 1_000,
    })
    // Reads cost no credits.
    expect(limitOf(await read())).toMatchObject({ limit: 10, remaining: 7 })
  })

  test('refuse verifications until midnight UTC when used up, and allow reads', async () => {
    const { single, list, read, submit, clock } = await limited({ plan: 'free' })
    await submit(users(100))
    for (const ask of [single, list]) {
      const answer = await ask()
      expect([answer.status, await codeOf(answer)]).toEqual([429, 'quota_exceeded'])
      expect(answer.headers.get('Retry-After')).toBe(String((12 * HOUR) / 1_000))
      expect(limitOf(answer)).toMatchObject({ limit: 100, remaining: 0 })
    }
    expect(limitOf(await read())).toMatchObject({ limit: 10, remaining: 8 })
    // Simulated requests cost no credits.
    expect((await single({ headers: { 'X-EV-Sandbox': 'true' } })).status).toBe(200)
    await clock.advance(12 * HOUR)
    expect((await single()).status).toBe(200)
  })

  test('apply even if rate limits are off', async () => {
    const { submit, single } = await limited({ plan: 'free', settings: { limits: false } })
    await submit(users(100))
    expect((await single()).status).toBe(429)
  })
})

test('limits survive a restart', async () => {
  const settings = { dataDir: tempFolder() }
  const before = await limited({ settings })
  expect(await admitted(before.list, 7)).toBe(7)
  const after = await limited({ settings })
  expect(await admitted(after.list, 10)).toBe(3)
})
