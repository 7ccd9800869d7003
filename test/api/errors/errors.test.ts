import { HTTPException } from 'hono/http-exception'
import { describe, expect, test } from 'vitest'
import { ApiError, STATUS } from '../../../src/api/errors/api-error.ts'
import { requestError } from '../../../src/api/errors/request-errors.ts'
import { EvError } from '../../../src/platform/error.ts'
import { webhookError } from '../../../src/webhooks/errors.ts'
import { addGuardedRoute, codeOf } from '../../support/guarded-route.ts'
import { createTestService } from '../../support/service.ts'

async function thrown(error: Error, headers: Record<string, string> = {}) {
  const h = await createTestService()
  addGuardedRoute(h, '/v1/room', {
    handler: () => {
      throw error
    },
  })
  return { answer: await h.request('/v1/room', { body: {}, headers }), lines: h.lines }
}

const sqlite = (code: string) => Object.assign(new Error('of SQLite'), { code })

describe('a thrown value', () => {
  test.each([
    ['an error of the API', new ApiError('job_not_ready', 'x'), 'job_not_ready'],
    ['a full disk', sqlite('SQLITE_FULL'), 'service_unavailable'],
    ['a busy database', sqlite('SQLITE_BUSY_SNAPSHOT'), 'service_unavailable'],
    ['a broken database', sqlite('SQLITE_CORRUPT'), 'server_error'],
    ['bad input', new EvError('bad_input', 'x'), 'invalid_request'],
    ['an error of the settings', new EvError('bad_config', 'x'), 'server_error'],
    ['a media type that Hono rejects', new HTTPException(415), 'unsupported_media_type'],
    ['JSON that Hono rejects', new HTTPException(400, { message: 'x' }), 'invalid_request'],
    ['anything', new TypeError('x'), 'server_error'],
  ])('has a code: %s', async (_, error, code) => {
    expect(await codeOf(await (await thrown(error)).answer)).toBe(code)
  })

  test('keeps its cause for the log', async () => {
    const { lines } = await thrown(new TypeError('the reason'))
    expect(lines[0]).toMatchObject({
      level: 'error',
      fields: { code: 'server_error', why: 'the reason' },
    })
  })
})

describe('an error', () => {
  test.each(Object.entries(STATUS))('%s is answered with %i', async (code, status) => {
    const { answer } = await thrown(new ApiError(code as keyof typeof STATUS, 'A sentence'))
    expect(answer.status).toBe(status)
    expect(await answer.json()).toEqual({
      success: false,
      error: 'A sentence',
      code,
      request_id: answer.headers.get('X-Request-Id'),
    })
  })

  test('of an operation names its reason, and what to do in terms of the API', async () => {
    const { answer } = await thrown(webhookError('webhook_limit_reached', { count: 100 }))
    expect(await answer.json()).toMatchObject({
      error: 'The account has 100 webhooks, which is the maximum. Delete one first.',
      code: 'invalid_request',
      reason: 'webhook_limit_reached',
      remedy: 'Delete one first.',
    })
  })

  test('that only the API has names its reason as well', async () => {
    const { answer } = await thrown(requestError('key_missing', { header: undefined }))
    expect(await answer.json()).toMatchObject({
      error: 'Missing or invalid API key. Send the header Authorization: Bearer <API_KEY>.',
      reason: 'key_missing',
      remedy: 'Send the header Authorization: Bearer <API_KEY>.',
    })
  })

  test('that is temporary has Retry-After', async () => {
    const { answer } = await thrown(new ApiError('rate_limit', 'x', { retryAfterS: 41.2 }))
    expect(answer.headers.get('Retry-After')).toBe('42')
    const delayOf = async (error: Error) => (await thrown(error)).answer.headers.get('Retry-After')
    expect(await delayOf(sqlite('SQLITE_FULL'))).toBe('5')
    expect(await delayOf(new ApiError('service_unavailable', 'x'))).toBe('1')
    expect(await delayOf(new ApiError('not_found', 'x'))).toBeNull()
  })

  test('is a problem document (RFC 9457) for clients that accept one', async () => {
    const headers = { Accept: 'application/problem+json' }
    const { answer } = await thrown(new ApiError('not_found', 'Job not found.'), headers)
    expect(answer.headers.get('Content-Type')).toBe('application/problem+json')
    expect(await answer.json()).toEqual({
      type: 'about:blank',
      title: 'not_found',
      status: 404,
      detail: 'Job not found.',
      success: false,
      error: 'Job not found.',
      code: 'not_found',
      request_id: answer.headers.get('X-Request-Id'),
    })
  })
})
