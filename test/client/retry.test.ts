import { describe, expect, test } from 'vitest'
import { EvApiError, EvConnectionError } from '../../src/client/client.ts'
import { createScriptedClient, failureOf, type Reply } from '../support/scripted-client.ts'

const BUSY = { status: 503, json: { success: false, error: 'Busy', code: 'service_unavailable' } }
const LIMIT = { status: 429, json: { success: false, error: 'Slower', code: 'rate_limit' } }
const FINE = { json: { email: 'a@example.com' } }
const BROKEN = new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED') })

const DATE_IN_7_S = 'Mon, 01 Jun 2026 12:00:07 GMT'

describe('a call that fails with a transient error', () => {
  test.each<[string, Reply]>([
    ['too many requests', LIMIT],
    ['a request timeout', { status: 408 }],
    ['an internal error', { status: 500 }],
    ['a proxy without a service', { status: 502, body: '<h1>Bad Gateway</h1>' }],
    ['a busy service', BUSY],
    ['a gateway timeout', { status: 504, body: '' }],
    ['no connection', BROKEN],
  ])('is retried after %s', async (_, failure) => {
    const { client, asked } = createScriptedClient([failure, FINE])
    expect(await client.verify.single('a@example.com')).toEqual({ email: 'a@example.com' })
    expect(asked).toHaveLength(2)
  })

  test.each([300, 400, 401, 403, 404, 405, 409, 413, 415, 422, 501, 505])(
    'is not retried after %i',
    async status => {
      const { client, asked } = createScriptedClient([{ status }, FINE])
      const error = await failureOf(client.verify.single('a@example.com'))
      expect(error).toMatchObject({ name: 'EvApiError', status })
      expect(asked).toHaveLength(1)
    },
  )

  test('is retried three times, and fails with the last error', async () => {
    const { client, asked } = createScriptedClient([BROKEN, BUSY, BROKEN, BUSY, FINE])
    expect(await failureOf(client.credits())).toBeInstanceOf(EvApiError)
    expect(asked).toHaveLength(4)
  })

  test.each([
    [0, 1],
    [1, 2],
  ])('is retried %i times with that option', async (retries, attempts) => {
    const byClient = createScriptedClient([BROKEN], { retries })
    expect(await failureOf(byClient.client.credits())).toBeInstanceOf(EvConnectionError)
    expect(byClient.asked).toHaveLength(attempts)
    const byCall = createScriptedClient([BROKEN], { retries: 7 })
    await failureOf(byCall.client.credits({ retries }))
    expect(byCall.asked).toHaveLength(attempts)
  })
})

describe('the wait before a retry', () => {
  test('doubles up to eight seconds, with full jitter', async () => {
    const draws = [0.5, 0.5, 0.5, 0.25, 1, 1, 0]
    const { client, waits } = createScriptedClient([BUSY], {
      retries: 7,
      random: () => draws.shift() ?? 0,
    })
    await failureOf(client.credits())
    expect(waits).toEqual([250, 500, 1_000, 1_000, 8_000, 8_000, 0])
  })

  test.each<[string, Record<string, string>, number]>([
    ['seconds', { 'retry-after': '7' }, 7_250],
    ['a date', { 'retry-after': DATE_IN_7_S }, 7_250],
    ['a date in the past', { 'retry-after': 'Mon, 01 Jun 2026 11:59:00 GMT' }, 250],
    ['an invalid header', { 'retry-after': 'soon' }, 250],
    ['a minute, the maximum', { 'retry-after': '60' }, 60_250],
  ])('is never shorter than Retry-After: %s', async (_, headers, waitMs) => {
    const { client, waits } = createScriptedClient([{ ...LIMIT, headers }, FINE])
    await client.credits()
    expect(waits).toEqual([waitMs])
  })

  test('follows the body if a browser may not read the header', async () => {
    const simulated = { status: 429, json: { error: 'rate_limit', retry_after: 3 } }
    const { client, waits } = createScriptedClient([simulated, FINE])
    await client.verify.single('error-ratelimit@example.com')
    expect(waits).toEqual([3_250])
  })

  test('is limited to a minute: a longer Retry-After fails the call', async () => {
    const { client, asked, waits } = createScriptedClient([
      { ...LIMIT, headers: { 'retry-after': '61' } },
      FINE,
    ])
    expect(await failureOf(client.credits())).toMatchObject({ status: 429, retryAfterMs: 61_000 })
    expect([asked.length, waits]).toEqual([1, []])
  })
})

describe('a repeated request', () => {
  test('has one Idempotency-Key for all attempts of a call, and another for the next call', async () => {
    let drawn = 0
    const { client, asked } = createScriptedClient([BROKEN, BUSY, { json: {} }], {
      random: () => (drawn++ % 97) / 97,
    })
    await client.batch(['a@example.com'])
    await client.batch(['a@example.com'])
    const keys = asked.map(({ headers }) => headers.get('idempotency-key'))
    expect(keys[0]).toMatch(/^[0-9a-f]{32}$/)
    expect(keys).toEqual([keys[0], keys[0], keys[0], expect.not.stringMatching(String(keys[0]))])
  })

  test('has the key of the caller', async () => {
    const { client, asked } = createScriptedClient([BROKEN, { json: {} }])
    await client.bulk(['a@example.com'], { idempotencyKey: 'order-7' })
    expect(asked.map(({ headers }) => headers.get('idempotency-key'))).toEqual([
      'order-7',
      'order-7',
    ])
  })

  test.each(['', 'a\n', 'ä', 'a'.repeat(256)])(
    'refuses a key that is invalid in a header: %j',
    async key => {
      const { client, asked } = createScriptedClient([{ json: {} }])
      const failure = await failureOf(client.batch(['a@example.com'], { idempotencyKey: key }))
      expect([failure instanceof TypeError, asked.length]).toEqual([true, 0])
    },
  )

  test('waits for the attempt whose response was lost, while it is in progress', async () => {
    const under = {
      status: 409,
      json: { success: false, error: '…', code: 'idempotency_in_progress' },
    }
    const { client, asked } = createScriptedClient([BROKEN, under, { json: { job_id: 'job_1' } }])
    expect(await client.batch(['a@example.com'])).toEqual({ job_id: 'job_1' })
    expect(asked).toHaveLength(3)
  })

  test('succeeds if an earlier attempt deleted it', async () => {
    const notFound = {
      status: 404,
      json: { success: false, error: 'No such job', code: 'not_found' },
    }
    expect(
      await createScriptedClient([BROKEN, notFound]).client.jobs.delete('job_1'),
    ).toBeUndefined()
    expect(
      await failureOf(createScriptedClient([notFound]).client.jobs.delete('job_1')),
    ).toMatchObject({ status: 404 })
  })
})
