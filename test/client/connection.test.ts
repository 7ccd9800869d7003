import { describe, expect, test } from 'vitest'
import { EvApiError, type ResponseInfo } from '../../src/client/client.ts'
import {
  ATTEMPT_MS,
  createScriptedClient,
  failureOf,
  type Reply,
} from '../support/scripted-client.ts'

const FINE = { json: { email: 'a@example.com' } }

describe('a request', () => {
  test('sends the key, and JSON for JSON', async () => {
    const { client, asked } = createScriptedClient([FINE])
    await client.verify.single('a@example.com')
    expect(asked[0]).toMatchObject({
      method: 'POST',
      path: '/v1/verify/single',
      body: { email: 'a@example.com' },
    })
    expect(Object.fromEntries(asked[0]?.headers ?? [])).toEqual({
      accept: 'application/json',
      authorization: 'Bearer ev_live_test',
      'content-type': 'application/json',
    })
  })

  test('sends the header of the sandbox', async () => {
    const { client, asked } = createScriptedClient([FINE], { sandbox: true })
    await client.verify('a@example.com')
    expect(asked[0]?.headers.get('x-ev-sandbox')).toBe('true')
  })

  test('does not send the key to the target of a redirect', async () => {
    const { client, asked } = createScriptedClient([FINE])
    await client.verify.single('a@example.com')
    expect(asked[0]?.redirect).toBe('manual')
  })

  test('encodes names in its path', async () => {
    const { client, asked } = createScriptedClient([FINE])
    await client.jobs.get('../keys?a=1#b')
    expect(asked[0]?.path).toBe('/v1/jobs/..%2Fkeys%3Fa%3D1%23b')
  })
})

describe('an error response', () => {
  test.each<[string, Reply, Partial<EvApiError>]>([
    [
      'an error of the service',
      {
        status: 400,
        json: {
          success: false,
          error: 'Invalid email',
          code: 'invalid_email',
          request_id: 'req_1',
        },
      },
      { status: 400, message: 'Invalid email', code: 'invalid_email', requestId: 'req_1' },
    ],
    [
      'one without additional fields',
      { status: 401, json: { success: false, error: 'No key' } },
      { status: 401, message: 'No key', code: null, requestId: null },
    ],
    [
      'an error of the sandbox',
      { status: 401, json: { error: 'authentication_error', message: 'Simulated' } },
      { status: 401, message: 'Simulated', code: 'authentication_error' },
    ],
    [
      'an error of the sandbox without a message',
      { status: 429, json: { error: 'rate_limit', retry_after: 90 } },
      { status: 429, message: 'rate_limit', code: 'rate_limit', retryAfterMs: 90_000 },
    ],
    [
      'an HTML page of a proxy',
      { status: 403, body: '<h1>No</h1>', headers: { 'x-request-id': 'req_2' } },
      { status: 403, code: null, requestId: 'req_2', body: '<h1>No</h1>' },
    ],
    ['nothing', { status: 403, body: '' }, { status: 403, code: null, body: '' }],
    ['JSON that is not an object', { status: 403, json: [1] }, { code: null, body: [1] }],
    [
      'fields of other types',
      { status: 403, json: { error: { a: 1 }, code: null } },
      { code: null },
    ],
    [
      'a redirect, which is not followed',
      { status: 301, body: '', headers: { location: 'https://other.example/' } },
      { status: 301, message: expect.stringMatching(/other\.example.*baseUrl/) },
    ],
  ])('is parsed: %s', async (_, reply, expected) => {
    const { client, asked } = createScriptedClient([reply], { retries: 0 })
    const error = await failureOf(client.verify.single('a@example.com'))
    expect(error).toBeInstanceOf(EvApiError)
    expect(error).toMatchObject(expected)
    expect((error as EvApiError).message).not.toBe('')
    expect(asked).toHaveLength(1)
  })

  test('is thrown for a success that is not JSON', async () => {
    const { client } = createScriptedClient([{ body: '<h1>Welcome to the hotel</h1>' }])
    const error = await failureOf(client.credits())
    expect(error).toMatchObject({ name: 'EvApiError', status: 200, code: null })
    expect(String(error)).toMatch(/not JSON/)
  })
})

test('an empty body is an error if JSON is expected', async () => {
  expect(await failureOf(createScriptedClient([{ body: '' }]).client.credits())).toMatchObject({
    status: 200,
  })
})

describe('no response', () => {
  test('reports the cause of the failed fetch', async () => {
    const cause = new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED') })
    const error = await failureOf(createScriptedClient([cause], { retries: 0 }).client.credits())
    expect(error).toMatchObject({ name: 'EvConnectionError', timedOut: false, cause })
    expect(String(error)).toMatch(/ECONNREFUSED/)
  })

  test('in time ends the attempt, and the next one has the full timeout', async () => {
    const { client, asked, expire } = createScriptedClient(['silence', FINE])
    const answer = client.verify.single('a@example.com')
    await asking(asked, 1)
    expire()
    expect(await answer).toEqual({ email: 'a@example.com' })
    expect(asked.map(({ signal }) => signal.aborted)).toEqual([true, false])
  })

  test('in time for the last attempt reports the timeout', async () => {
    const { client, asked, expire } = createScriptedClient(['silence'], { retries: 0 })
    const failure = failureOf(client.credits({ timeoutMs: ATTEMPT_MS + 5 }))
    await asking(asked, 1)
    expire()
    expect(await failure).toMatchObject({ name: 'EvConnectionError', timedOut: true })
    expect(String(await failure)).toMatch(/1000005 ms/)
  })

  test('with a complete body is retried', async () => {
    const broken = new ReadableStream({
      pull: controller => controller.error(new TypeError('terminated')),
    })
    const { client, asked } = createScriptedClient([{ body: broken }, FINE])
    expect(await client.credits()).toBeUndefined()
    expect(asked).toHaveLength(2)
  })
})

describe('a caller that aborts', () => {
  test('before the call sends no request', async () => {
    const { client, asked } = createScriptedClient([FINE])
    const signal = AbortSignal.abort('I left')
    expect(await failureOf(client.credits({ signal }))).toBe('I left')
    expect(asked).toEqual([])
  })

  test('during a request cancels it, and gets its own reason', async () => {
    const { client, asked } = createScriptedClient(['silence'])
    const aborting = new AbortController()
    const failure = failureOf(client.credits({ signal: aborting.signal }))
    await asking(asked, 1)
    aborting.abort('I left')
    expect(await failure).toBe('I left')
    expect(asked.map(({ signal }) => signal.aborted)).toEqual([true])
  })

  test('between two attempts prevents the second one', async () => {
    const aborting = new AbortController()
    const { client, asked } = createScriptedClient([{ status: 503 }], {
      sleep: async ms => {
        if (ms < ATTEMPT_MS) aborting.abort('I left')
        else await new Promise(() => {})
      },
    })
    expect(await failureOf(client.credits({ signal: aborting.signal }))).toBe('I left')
    expect(asked).toHaveLength(1)
  })

  test('leaves no listener on a signal that lives on', async () => {
    let listeners = 0
    const signal = new AbortController().signal
    const { addEventListener, removeEventListener } = signal
    signal.addEventListener = (...args: Parameters<typeof addEventListener>) => {
      listeners++
      addEventListener.apply(signal, args)
    }
    signal.removeEventListener = (...args: Parameters<typeof removeEventListener>) => {
      listeners--
      removeEventListener.apply(signal, args)
    }
    await createScriptedClient([{ status: 503 }, FINE]).client.verify.single('a@example.com', {
      signal,
    })
    expect(listeners).toBe(0)
  })
})

test('onAnswer is called for every response, with its rate limit', async () => {
  const seen: ResponseInfo[] = []
  const limits = { 'x-ratelimit-limit': '10', 'x-ratelimit-remaining': '3' }
  const headers = { ...limits, 'x-ratelimit-reset': '1780315260', 'x-request-id': 'req_7' }
  const replies = [{ status: 503 }, { ...FINE, headers }, { headers: limits }]
  const { client } = createScriptedClient(replies, { onAnswer: one => seen.push(one) })
  await client.verify.single('a@example.com')
  await client.credits()
  const rateLimit = { limit: 10, remaining: 3, resetAt: new Date(1_780_315_260_000) }
  const call = { method: 'POST', path: '/v1/verify/single', replayed: false }
  expect(seen.slice(0, 2)).toEqual([
    { ...call, status: 503, attempt: 0, requestId: null, rateLimit: null },
    { ...call, status: 200, attempt: 1, requestId: 'req_7', rateLimit },
  ])
  expect(seen[2]?.rateLimit).toBeNull()
})

test('an error thrown by onAnswer rejects the call without a retry', async () => {
  const fault = new Error('my own')
  const { client, asked } = createScriptedClient([FINE], {
    onAnswer: () => {
      throw fault
    },
  })
  expect(await failureOf(client.credits())).toBe(fault)
  expect(asked).toHaveLength(1)
})

/** Resolves when this many requests were sent. */
async function asking(asked: readonly unknown[], count: number): Promise<void> {
  while (asked.length < count) await new Promise(resolve => setImmediate(resolve))
}
