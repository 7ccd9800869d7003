import { describe, expect, test } from 'vitest'
import { addGuardedRoute } from '../support/guarded-route.ts'
import { createTestService } from '../support/service.ts'

const LIMITS = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset']

describe('every response', () => {
  test.each([
    ['a path without a key', '/livez', {}, 200],
    ['an unknown path', '/v1/nothing', {}, 404],
    ['an unsupported method', '/livez', { method: 'DELETE' }, 405],
    ['a preflight', '/v1/room', { method: 'OPTIONS', key: null }, 204],
    ['no key', '/v1/room', { key: null, body: {} }, 401],
    ['a bad body', '/v1/room', { body: '{' }, 400],
    ['an internal error', '/v1/broken', { body: {} }, 500],
    ['a valid request', '/v1/room', { body: {} }, 200],
    ['HEAD', '/livez', { method: 'HEAD' }, 200],
    ['the document', '/openapi.json', {}, 200],
  ])('has rate limit headers and an ID: %s', async (_, path, options, status) => {
    const h = await createTestService()
    addGuardedRoute(h, '/v1/room')
    addGuardedRoute(h, '/v1/broken', {
      handler: () => {
        throw new TypeError('a secret thing')
      },
    })
    const answer = await h.request(path, options)
    expect(answer.status).toBe(status)
    for (const name of LIMITS) expect(answer.headers.get(name)).toMatch(/^\d+$/)
    expect(answer.headers.get('X-Request-Id')).toMatch(/^req_\w{20}$/)
    expect(answer.headers.get('X-Content-Type-Options')).toBe('nosniff')
    expect(answer.headers.get('Access-Control-Allow-Origin')).toBe('*')
    expect(answer.headers.get('Access-Control-Expose-Headers')).toContain('X-RateLimit-Remaining')
    expect(answer.headers.get('Access-Control-Allow-Credentials')).toBeNull()
  })

  test('has HSTS only if the service is reached by HTTPS', async () => {
    const hsts = async (baseUrl: string) => {
      const { request } = await createTestService({ settings: { baseUrl } })
      return (await request('/livez')).headers.get('Strict-Transport-Security')
    }
    expect(await hsts('https://ev.test')).toMatch(/^max-age=\d+/)
    expect(await hsts('http://127.0.0.1:8080')).toBeNull()
  })
})

describe('paths', () => {
  test('that are unknown return 404 as JSON', async () => {
    const { request } = await createTestService()
    const answer = await request('/v1/nothing')
    expect(await answer.json()).toEqual({
      success: false,
      error: 'Path not found. See /docs for all paths.',
      code: 'not_found',
      reason: 'path_unknown',
      remedy: 'See /docs for all paths.',
      request_id: answer.headers.get('X-Request-Id'),
    })
  })

  test('with another method return 405 with the allowed ones', async () => {
    const h = await createTestService()
    addGuardedRoute(h, '/v1/room/:id')
    addGuardedRoute(h, '/v1/room/:id', { method: 'get' })
    const answer = await h.request('/v1/room/7', { method: 'PATCH' })
    expect(answer.status).toBe(405)
    expect(answer.headers.get('Allow')).toBe('GET, HEAD, POST, OPTIONS')
    expect(await answer.json()).toMatchObject({
      code: 'method_not_allowed',
      error: 'Method not allowed. Use GET or POST.',
    })
  })

  test('with POST only do not support HEAD', async () => {
    const h = await createTestService()
    addGuardedRoute(h, '/v1/room')
    const answer = await h.request('/v1/room', { method: 'HEAD' })
    expect([answer.status, answer.headers.get('Allow')]).toEqual([405, 'POST, OPTIONS'])
  })

  test('may end with a slash', async () => {
    const h = await createTestService()
    addGuardedRoute(h, '/v1/room')
    expect((await h.request('/v1/room/', { body: {} })).status).toBe(200)
    expect((await h.request('/livez/')).status).toBe(200)
  })
})

test('HEAD is GET without a body', async () => {
  const { request } = await createTestService()
  const answer = await request('/livez', { method: 'HEAD' })
  expect(answer.status).toBe(200)
  expect(answer.headers.get('Content-Type')).toContain('application/json')
  expect(await answer.text()).toBe('')
})

describe('a browser on another site', () => {
  test('gets a CORS preflight response', async () => {
    const h = await createTestService()
    addGuardedRoute(h, '/v1/room')
    const answer = await h.request('/v1/room', {
      method: 'OPTIONS',
      key: null,
      headers: {
        Origin: 'https://app.test',
        'Access-Control-Request-Method': 'POST',
        'Access-Control-Request-Headers': 'authorization',
      },
    })
    expect(answer.status).toBe(204)
    expect(answer.headers.get('Access-Control-Allow-Methods')).toContain('POST')
    expect(answer.headers.get('Access-Control-Allow-Headers')).toMatch(
      /Authorization.*Idempotency-Key.*X-EV-Sandbox/,
    )
  })

  test('gets no preflight response for an unknown path', async () => {
    const { request } = await createTestService()
    expect((await request('/v1/nothing', { method: 'OPTIONS' })).status).toBe(404)
  })
})

describe('the log', () => {
  test('has a line for each request, with the declared path and no secret', async () => {
    const h = await createTestService()
    addGuardedRoute(h, '/v1/room/:id')
    const answer = await h.request('/v1/room/ann@a.test?email=bob@a.test', {
      body: { email: 'cyd@a.test' },
    })
    const line = h.lines.find(({ message }) => message === 'request')
    expect(line).toEqual({
      level: 'info',
      message: 'request',
      fields: {
        requestId: answer.headers.get('X-Request-Id'),
        method: 'POST',
        route: '/v1/room/:id',
        status: 200,
        ms: 0,
        keyId: 'key_1',
      },
    })
    expect(JSON.stringify(h.lines)).not.toMatch(/@a\.test|ev_live_/)
  })

  test('is not filled by monitoring', async () => {
    const { request, lines } = await createTestService()
    await request('/livez')
    expect(lines.map(({ level }) => level)).toEqual(['debug'])
  })

  test('has the cause of an internal error, which the caller does not learn', async () => {
    const h = await createTestService()
    addGuardedRoute(h, '/v1/broken', {
      handler: () => {
        throw new TypeError('a secret thing')
      },
    })
    const answer = await h.request('/v1/broken', { body: {} })
    expect(await answer.json()).toMatchObject({
      error: 'An internal error occurred. Try again later.',
      code: 'server_error',
    })
    const line = h.lines.find(({ level }) => level === 'error')
    expect(line?.fields).toMatchObject({
      why: 'a secret thing',
      requestId: answer.headers.get('X-Request-Id'),
    })
  })
})
