import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { IP_LIMITS, mergePlans } from '../../../src/accounts/plan.ts'
import { DAY } from '../../../src/platform/clock.ts'
import { toRecipients } from '../../support/engine.ts'
import { users } from '../../support/recipients.ts'
import { createTestService } from '../../support/service.ts'
import { drainEventLoop } from '../../support/wait.ts'

const PATH = '/v1/verify/single'
const BULK = '/v1/verify/bulk'
/** The limit of stored rows if none is stored. */
const NO_ROWS = { name: 'stored_rows', limit: 100_000, remaining: 100_000 }

type Options = NonNullable<Parameters<typeof createTestService>[0]>

/** A free account that has this many credits a day. */
async function free(creditsPerDay: number, { settings, ...options }: Options = {}) {
  const plans = mergePlans({ free: { creditsPerDay } })
  const service = await createTestService({
    plan: 'free',
    settings: { limits: false, ...settings, plans },
    ...options,
  })
  return { ...service, credit: service.credits }
}

/** The same account with a webhook for exhausted credits, and the events that it gets. */
async function subscribed(creditsPerDay: number) {
  const service = await free(creditsPerDay)
  const { json } = service
  await json('/v1/webhooks', { body: { url: 'https://8.8.8.8/', events: ['quota.exceeded'] } })
  const notified = async () => {
    const { items } = (await json('/v1/events')).data as { items: { data: object }[] }
    return items.map(({ data }) => data)
  }
  return { ...service, notified }
}

describe('a single verification', () => {
  test('costs a credit for a definite answer', async () => {
    const { json, credit } = await free(100)
    await json(PATH, { body: { email: 'ann@a.test' } })
    expect(await credit()).toEqual({ used: 1, held: 0 })
    await json(PATH, { body: { email: 'zoe@a.test' } })
    expect(await credit()).toEqual({ used: 2, held: 0 })
  })

  test('is free if the answer is cached or unknown', async () => {
    const { json, credit } = await free(100, {
      engine: {
        script: toRecipients(to => (to.startsWith('ann') ? '250 2.1.5 Ok' : '451 4.3.0 Busy')),
      },
    })
    await json(PATH, { body: { email: 'ann@a.test' } })
    const known = await json(PATH, { body: { email: 'ann@a.test' } })
    const unknown = await json(PATH, { body: { email: 'bob@a.test' } })
    expect([known.cached, unknown.risk_level]).toEqual([true, 'unknown'])
    expect(await credit()).toEqual({ used: 1, held: 0 })
  })

  test('costs one credit for concurrent requests, and none right after', async () => {
    const { json, credit, mx } = await free(100)
    const ask = () => json(PATH, { body: { email: 'ann@a.test' } })
    const answers = await Promise.all([ask(), ask(), ask(), ask(), ask()])
    expect(answers.map(({ reason }) => reason)).toEqual(Array(5).fill('accepted_email'))
    expect(answers.map(({ cached }) => cached).toSorted()).toEqual([false, true, true, true, true])
    expect((await ask()).cached).toBe(true)
    expect(await credit()).toEqual({ used: 1, held: 0 })
    expect(mx.dialled).toHaveLength(1)
  })

  test('is free in the sandbox, and for refused text', async () => {
    const { json, request, credit } = await free(100)
    const headers = { 'X-EV-Sandbox': 'true' }
    expect(await json(PATH, { body: { email: 'valid@a.test' }, headers })).toMatchObject({
      sandbox: true,
    })
    await request(PATH, { body: { email: 'nonsense' } })
    expect(await credit()).toEqual({ used: 0, held: 0 })
  })

  test('without credits returns 429 quota_exceeded until midnight, and probes nothing', async () => {
    const { request, mx, submit, settled } = await free(100)
    await submit(users(100))
    const response = await settled(request(PATH, { body: { email: 'ann@a.test' } }))
    expect(response.status).toBe(429)
    expect(response.headers.get('Retry-After')).toBe(String(12 * 3600))
    expect(await response.json()).toMatchObject({
      code: 'quota_exceeded',
      error: expect.stringContaining('100 daily verifications'),
    })
    expect(mx.lines()).toEqual([])
  })

  test('with one credit left is done once for a hundred requests at the same time', async () => {
    const { request, settled, credit, mx } = await free(1)
    const asked = Array.from({ length: 100 }, (_, n) =>
      request(PATH, { body: { email: `user${n}@a.test` } }),
    )
    const responses = await settled(Promise.all(asked))
    const statuses = responses.map(({ status }) => status)
    expect(statuses.filter(status => status === 200)).toHaveLength(1)
    expect(statuses.filter(status => status === 429)).toHaveLength(99)
    expect(await credit()).toEqual({ used: 1, held: 0 })
    expect(mx.lines().filter(line => line.startsWith('RCPT TO:<user'))).toHaveLength(1)
  })

  test('returns its credit if its client disconnects', async () => {
    const { app, key, settled, credit } = await free(100, {
      engine: { script: toRecipients(() => null) },
    })
    const aborting = new AbortController()
    const asked = app.request(
      PATH,
      {
        method: 'POST',
        body: JSON.stringify({ email: 'ann@a.test' }),
        headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
        signal: aborting.signal,
      },
      { incoming: { socket: { remoteAddress: '192.0.2.1' } } },
    )
    await drainEventLoop()
    aborting.abort()
    await settled(Promise.resolve(asked))
    expect(await credit()).toEqual({ used: 0, held: 0 })
  })

  test('is charged once under an Idempotency-Key', async () => {
    const { request, settled, credit } = await free(100)
    const headers = { 'Idempotency-Key': 'one' }
    const send = () => settled(request(PATH, { body: { email: 'ann@a.test' }, headers }))
    const [first, second] = [await send(), await send()]
    expect(second.headers.get('Idempotency-Replayed')).toBe('true')
    expect(await second.text()).toBe(await first.text())
    expect(await credit()).toEqual({ used: 1, held: 0 })
  })
})

describe('a short list', () => {
  const emails = ['ann@a.test', 'ann@a.test', 'bob@a.test', 'nonsense']

  test('costs a credit for each address, but not for duplicates and malformed ones', async () => {
    const { json, credit } = await free(100)
    await json('/v1/verify/bulk', { body: { emails } })
    expect(await credit()).toEqual({ used: 2, held: 0 })
  })

  test('is refused as a whole if its addresses need more credits than are left', async () => {
    const { request, settled, credit, mx } = await free(1)
    const response = await settled(request('/v1/verify/bulk', { body: { emails } }))
    expect(response.status).toBe(429)
    expect(await credit()).toEqual({ used: 0, held: 0 })
    expect(mx.lines()).toEqual([])
  })
})

describe('a cached answer', () => {
  /** An account that spent its last credit on the address of Ann. */
  async function spent() {
    const fixture = await free(1, { settings: { limits: true } })
    await fixture.json(PATH, { body: { email: 'ann@a.test' } })
    expect(await fixture.credit()).toEqual({ used: 1, held: 0 })
    const asked = fixture.mx.lines().length
    const ask = (path: string, body: object, headers: Record<string, string> = {}) =>
      fixture.settled(fixture.request(path, { body, headers }))
    return { ...fixture, ask, newLines: () => fixture.mx.lines().slice(asked) }
  }

  test.each([PATH, '/v1/verify'])('is returned by %s without credits', async path => {
    const { ask, credit, newLines } = await spent()
    const response = await ask(path, { email: 'ann@a.test' })
    expect(response.status).toBe(200)
    expect(response.headers.get('X-RateLimit-Remaining')).toBe('0')
    expect(await response.json()).toMatchObject({ reason: 'accepted_email', cached: true })
    expect(await credit()).toEqual({ used: 1, held: 0 })
    expect(newLines()).toEqual([])
  })

  test('reserves no credits', async () => {
    const { json, database } = await free(2)
    await json(PATH, { body: { email: 'ann@a.test' } })
    await sql`create trigger refuse before update on credit when new.held > old.held
      begin select raise(abort, 'a reservation'); end`.execute(database.db)
    expect(await json(PATH, { body: { email: 'ann@a.test' } })).toMatchObject({ cached: true })
    const uncached = await json(PATH, { body: { email: 'bob@a.test' } })
    expect(uncached).toMatchObject({ code: 'server_error' })
  })

  test('is stored under its Idempotency-Key without credits', async () => {
    const { ask, credit } = await spent()
    const headers = { 'Idempotency-Key': 'one' }
    const first = await ask(PATH, { email: 'ann@a.test' }, headers)
    const second = await ask(PATH, { email: 'ann@a.test' }, headers)
    expect([first.status, second.headers.get('Idempotency-Replayed')]).toEqual([200, 'true'])
    expect(await second.text()).toBe(await first.text())
    expect(await credit()).toEqual({ used: 1, held: 0 })
  })

  test('is streamed without credits, with the step that says so', async () => {
    const { ask, newLines } = await spent()
    const response = await ask(PATH, { email: 'ann@a.test' }, { Accept: 'text/event-stream' })
    expect(response.status).toBe(200)
    const text = await response.text()
    expect(text.match(/"step":"[a-z]+"/g)).toEqual([
      '"step":"syntax"',
      '"step":"domain"',
      '"step":"cached"',
    ])
    expect(text).toContain('event: result')
    expect(newLines()).toEqual([])
  })

  test.each([
    ['whose answer is not cached', PATH, { email: 'bob@a.test' }],
    ['with force_refresh', PATH, { email: 'ann@a.test', force_refresh: true }],
    ['without mail servers', PATH, { email: 'ann@a.test', check_smtp: false }],
    ['that is asynchronous', PATH, { email: 'ann@a.test', async: true }],
    ['with one address that is not cached', BULK, { emails: ['ann@a.test', 'bob@a.test'] }],
    ['for a list with force_refresh', BULK, { emails: ['ann@a.test'], force_refresh: true }],
    ['for a list without mail servers', BULK, { emails: ['ann@a.test'], check_smtp: false }],
    ['that becomes a job', BULK, { emails: Array(11).fill('ann@a.test') }],
    ['that is a batch', '/v1/verify/batch', { emails: ['ann@a.test'] }],
  ])(
    'is not returned for a request %s, which is refused and counts in no limit',
    async (_, path, body) => {
      const { ask, json, credit, newLines } = await spent()
      const limitsLeft = async () => {
        const { data } = (await json('/v1/limits')) as {
          data: { limits: Record<string, unknown>[] }
        }
        return data.limits.map(({ name, remaining }) => [name, remaining])
      }
      const before = await limitsLeft()
      const response = await ask(path, body)
      expect(response.status).toBe(429)
      expect(response.headers.get('X-RateLimit-Remaining')).toBe('0')
      expect(await response.json()).toMatchObject({
        code: 'quota_exceeded',
        error: expect.stringContaining('daily verifications are used up'),
      })
      // The request for the limits counts as a request of the key.
      const expected = before.map(([name, left]) => [
        name,
        Number(left) - Number(name === 'account:plan'),
      ])
      expect(await limitsLeft()).toEqual(expected)
      expect(await credit()).toEqual({ used: 1, held: 0 })
      expect(newLines()).toEqual([])
    },
  )

  test.each([
    ['a single verification', PATH, { email: 'ann@a.test' }],
    ['one with a score', '/v1/verify', { email: 'ann@a.test' }],
    ['a form', '/v1/verify/form', { email: 'ann@a.test' }],
    ['a list', BULK, { emails: ['ann@a.test'] }],
  ])('of another account is not returned for %s without credits', async (_, path, body) => {
    const { request, settled, submit, addAccount, addKey, newLines } = await spent()
    await addAccount('acc_2')
    const key = await addKey({ accountId: 'acc_2', id: 'key_of_acc_2' })
    await submit(users(1), { key })
    const response = await settled(request(path, { body, key }))
    expect(response.status).toBe(429)
    expect(await response.json()).toMatchObject({ code: 'quota_exceeded' })
    expect(newLines()).toEqual([])
  })

  test('that has expired costs a credit, so it is not returned', async () => {
    const { ask, clock, submit } = await spent()
    await clock.advance(DAY + 1)
    await submit(users(1))
    expect((await ask(PATH, { email: 'ann@a.test' })).status).toBe(429)
  })

  test('is returned for each row of a short list without credits', async () => {
    const { ask, credit, newLines } = await spent()
    const emails = ['ann@a.test', 'ann@a.test', 'nonsense']
    const response = await ask(BULK, { emails })
    expect(response.status).toBe(200)
    expect(await response.json()).toMatchObject({
      total_emails: 3,
      results: [
        { email: 'ann@a.test', valid: true, cached: true },
        { email: 'ann@a.test', valid: true, cached: true },
        { email: 'nonsense', valid: false },
      ],
    })
    expect(await credit()).toEqual({ used: 1, held: 0 })
    expect(newLines()).toEqual([])
  })

  test('is returned for each row if fewer credits are left than the list has addresses', async () => {
    const { json, ask, credit } = await free(3).then(fixture => ({
      ...fixture,
      ask: (body: object) => fixture.request(BULK, { body }),
    }))
    await json(BULK, { body: { emails: ['ann@a.test', 'bob@a.test'] } })
    expect(await credit()).toEqual({ used: 2, held: 0 })
    expect((await ask({ emails: ['ann@a.test', 'bob@a.test'] })).status).toBe(200)
    expect((await ask({ emails: ['ann@a.test', 'zoe@a.test'] })).status).toBe(429)
    expect(await credit()).toEqual({ used: 2, held: 0 })
  })

  test.each([
    ['announced', { 'Content-Length': '20000' }],
    ['not announced', {}],
  ])(
    'is not looked up for a body of more than ten addresses if its length is %s',
    async (_, headers) => {
      const { ask } = await spent()
      const emails = Array.from({ length: 1_000 }, (_, n) => `user-${n}@a.test`)
      const response = await ask(BULK, { emails }, headers)
      expect([response.status, await response.json()]).toEqual([
        429,
        expect.objectContaining({ code: 'quota_exceeded' }),
      ])
    },
  )
})

describe('a list that becomes a job', () => {
  const emails = Array.from({ length: 20 }, (_, n) => `user${n % 15}@a.test`)

  test('has a credit reserved for each address to verify', async () => {
    const { json, credit } = await free(100)
    await json('/v1/verify/bulk', { body: { emails: [...emails, 'nonsense'] } })
    expect(await credit()).toEqual({ used: 0, held: 15 })
  })

  test('has a credit reserved for each row with deduplicate: false', async () => {
    const { json, credit } = await free(100)
    await json('/v1/verify/batch', { body: { emails, deduplicate: false } })
    expect(await credit()).toEqual({ used: 0, held: 20 })
  })

  test('that needs more is refused with how many are left, and leaves nothing behind', async () => {
    const { request, json, settled, credit } = await free(10)
    const response = await settled(request('/v1/verify/bulk', { body: { emails } }))
    expect(response.status).toBe(429)
    expect(Number(response.headers.get('Retry-After'))).toBe(12 * 3600)
    expect(await response.json()).toMatchObject({
      code: 'quota_exceeded',
      error: expect.stringContaining('10 are left'),
    })
    expect(await credit()).toEqual({ used: 0, held: 0 })
    expect(await json('/v1/jobs')).toMatchObject({ data: { items: [] } })
    expect(await json('/v1/limits')).toMatchObject({
      data: { limits: expect.arrayContaining([expect.objectContaining(NO_ROWS)]) },
    })
  })

  test('is accepted once if two at the same time need the same credits', async () => {
    const { request, json, settled, credit } = await free(20)
    const responses = await settled(
      Promise.all([1, 2].map(() => request('/v1/verify/bulk', { body: { emails } }))),
    )
    expect(responses.map(({ status }) => status).toSorted()).toEqual([200, 429])
    expect(await credit()).toEqual({ used: 0, held: 15 })
    expect(await json('/v1/jobs')).toMatchObject({ data: { items: [{ status: 'queued' }] } })
  })

  test('that is refused without credits emits quota.exceeded once, even if some are only reserved', async () => {
    const { json, notified } = await subscribed(15)
    await json('/v1/verify/bulk', { body: { emails } })
    expect(await notified()).toEqual([])
    for (let n = 0; n < 2; n++) {
      const refused = await json('/v1/verify/batch', { body: { emails } })
      expect(refused).toMatchObject({ code: 'quota_exceeded' })
    }
    expect(await notified()).toEqual([
      expect.objectContaining({ used: 15, remaining: 0, threshold_percent: 100 }),
    ])
  })

  test('that is too long for the remaining credits emits nothing: a shorter one may fit', async () => {
    const { json, notified } = await subscribed(10)
    expect(await json('/v1/verify/batch', { body: { emails } })).toMatchObject({
      code: 'quota_exceeded',
    })
    expect(await notified()).toEqual([])
  })

  test('that loses the last credits to another in the meantime emits it, too', async () => {
    const { request, settled, notified } = await subscribed(15)
    const ask = () => request('/v1/verify/batch', { body: { emails } })
    const responses = await settled(Promise.all([ask(), ask()]))
    expect(responses.map(({ status }) => status).toSorted()).toEqual([200, 429])
    expect(await notified()).toHaveLength(1)
  })

  test('in the sandbox has no credits reserved', async () => {
    const { json, submit, credit } = await free(100)
    await submit(users(100))
    const headers = { 'X-EV-Sandbox': 'true' }
    await json('/v1/verify/bulk', { body: { emails }, headers })
    expect(await credit()).toEqual({ used: 0, held: 100 })
  })
})

test('a repeated response is refused by no limit, neither of lists nor of credits', async () => {
  const { request, addKey } = await createTestService({
    plan: 'free',
    settings: { ipLimits: { ...IP_LIMITS, singlePerMinute: 100, bulkPerHour: 1 } },
  })
  const key = await addKey()
  const emails = Array.from({ length: 100 }, (_, n) => `user${n}@a.test`)
  const ask = (idempotencyKey: string) =>
    request('/v1/verify/batch', {
      key,
      body: { emails },
      headers: { 'Idempotency-Key': idempotencyKey },
    })
  const first = await ask('k')
  expect(first.status).toBe(200)
  const again = await ask('k')
  expect(again.headers.get('Idempotency-Replayed')).toBe('true')
  expect(await again.text()).toBe(await first.text())
  expect((await ask('another')).status).toBe(429)
})
