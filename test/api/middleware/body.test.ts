import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { addGuardedRoute } from '../../support/guarded-route.ts'
import { createTestService, type RequestOptions } from '../../support/service.ts'

async function sent(o: RequestOptions & { bodyMax?: number }) {
  const h = await createTestService()
  addGuardedRoute(h, '/v1/room', o.bodyMax === undefined ? {} : { bodyMax: o.bodyMax })
  const answer = await h.request('/v1/room', { method: 'POST', ...o })
  const body = (await answer.json()) as { code?: string; error?: string; body?: unknown }
  return { status: answer.status, ...body }
}

const chunked = (...chunks: (string | Uint8Array)[]) =>
  new ReadableStream({
    pull(controller) {
      const chunk = chunks.shift()
      if (chunk === undefined) return controller.close()
      controller.enqueue(typeof chunk === 'string' ? new TextEncoder().encode(chunk) : chunk)
    },
  })

/** Like a body with Content-Length from Node's server. */
const measured = (body: string | Uint8Array) => ({
  body,
  headers: {
    'Content-Length': String(Buffer.byteLength(body)),
    'Content-Type': 'application/json',
  },
})

describe('a body', () => {
  test.each([
    ['of JSON', '{"a":1}', { a: 1 }],
    ['with a byte order mark', '\uFEFF{"a":1}', { a: 1 }],
    ['that is empty', '', {}],
    ['of white space', ' \n', {}],
    ['with characters of all planes', '{"a":"é😀"}', { a: 'é😀' }],
  ])('is read: %s', async (_, body, value) => {
    expect(await sent({ body })).toMatchObject({ status: 200, body: value })
    expect(await sent(measured(body))).toMatchObject({ status: 200, body: value })
  })

  test('that is missing counts as empty', async () => {
    expect(await sent({})).toMatchObject({ status: 200, body: {} })
  })

  test('cannot change the prototype of objects', async () => {
    const answer = await sent({
      body: '{"__proto__":{"admin":true},"constructor":{"prototype":1}}',
    })
    expect(answer.status).toBe(200)
    expect(({} as { admin?: boolean }).admin).toBeUndefined()
  })
})

describe('an unreadable body is refused with the position', () => {
  test.each([
    ['{"email": }', 'unexpected "}" at byte 10.'],
    ['{"a":1', 'unexpected end at byte 6.'],
    ['{"a":1} x', 'unexpected "x" at byte 8.'],
    ["{'a':1}", 'unexpected "\'" at byte 1.'],
    ['{"a":1e999x}', 'unexpected "1" at byte 5.'],
    ['\uFEFF{"é":"\\x"}', 'invalid escape in a string at byte 9.'],
    ['{"a":1,"b":{"a":2},"\\u0061":3}', 'the field "a" is repeated at byte 19.'],
    ['{"__proto__":1,"__proto__":1}', 'the field "__proto__" is repeated at byte 15.'],
  ])('%s', async (body, error) => {
    const answer = await sent({ body })
    expect(answer).toMatchObject({ status: 400, code: 'invalid_json' })
    expect(answer.error).toBe(`The request body is not valid JSON: ${error}`)
  })

  test.each([
    ['a lone continuation byte', [0x7b, 0x80, 0x7d], 1],
    ['Latin-1', [...Buffer.from('{"a":"caf'), 0xe9, 0x22, 0x7d], 9],
    ['a surrogate', [...Buffer.from('{"a":"'), 0xed, 0xa0, 0x80, 0x22, 0x7d], 6],
    ['a truncated character', [...Buffer.from('{"a":"'), 0xf0, 0x9f], 6],
    ['Latin-1 after kilobytes', [...Buffer.from(`"${'é'.repeat(6_000)}`), 0xe9, 0x22], 12_001],
  ])('if it is not UTF-8: %s', async (_, bytes, at) => {
    expect(await sent({ body: Uint8Array.from(bytes), bodyMax: 20_000 })).toMatchObject({
      status: 400,
      code: 'invalid_json',
      error: `The request body is not valid UTF-8 at byte ${at}.`,
    })
  })

  test('if it is nested too deep, however deep', async () => {
    for (const depth of [17, 200_000]) {
      const body = '['.repeat(depth) + ']'.repeat(depth)
      expect(await sent({ body, bodyMax: 1_000_000 })).toMatchObject({
        status: 400,
        code: 'invalid_json',
        error: 'The request body is nested deeper than 16 levels.',
      })
    }
    expect((await sent({ body: '['.repeat(16) + ']'.repeat(16) })).status).toBe(200)
  })

  test('without control characters in the error', async () => {
    const { error } = await sent({ body: '{"a\n\u001b[31m' })
    expect(error).not.toMatch(/\p{Cc}/u)
  })
})

describe('a body that is too large', () => {
  const LARGE = { status: 413, code: 'payload_too_large' }

  test('is refused by its announced length, unread', async () => {
    const headers = { 'Content-Length': '1001', 'Content-Type': 'application/json' }
    expect(await sent({ body: '{}', headers })).toMatchObject(LARGE)
  })

  test('is refused by its actual length, whatever it announced', async () => {
    const headers = { 'Content-Length': '2', 'Content-Type': 'application/json' }
    expect(await sent({ body: `"${'x'.repeat(1_000)}"`, headers })).toMatchObject(LARGE)
  })

  test('is refused in the middle if it does not end', async () => {
    let chunks = 0
    const endless = new ReadableStream({
      pull: controller => {
        chunks++
        controller.enqueue(new Uint8Array(100).fill(0x20))
      },
    })
    const h = await createTestService()
    addGuardedRoute(h, '/v1/room')
    const request = new Request('http://ev.test/v1/room', {
      method: 'POST',
      body: endless,
      duplex: 'half',
      headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${h.key}` },
    } as RequestInit)
    expect((await h.app.request(request)).status).toBe(413)
    expect(chunks).toBeLessThan(15)
  })

  test.each([
    ['values', `[${'{},'.repeat(5_000)}{}]`, 'more than 5,000 values, the limit of this endpoint'],
    [
      'fields',
      `{${Array.from({ length: 1_001 }, (_, n) => `"${n}":0`).join()}}`,
      'an object with more than 1,000 fields',
    ],
    ['text', `["${'x'.repeat(1_100_000)}"]`, 'a text or a number of more than 1,048,576 bytes'],
  ])('is refused for its %s before it is parsed', async (_, body, error) => {
    // What follows is not read: it would be a syntax error.
    const answer = await sent({ body: `${body}!`, bodyMax: 2_000_000 })
    expect(answer).toMatchObject(LARGE)
    expect(answer.error).toMatch(error)
  })

  test('is accepted at exactly the limit', async () => {
    const body = `"${'x'.repeat(998)}"`
    expect((await sent({ body })).status).toBe(200)
    expect((await sent(measured(body))).status).toBe(200)
    expect((await sent({ body: `${body} ` })).status).toBe(413)
  })
})

describe('a body of another type', () => {
  const UNSUPPORTED = { status: 415, code: 'unsupported_media_type' }

  test.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/json; charset=latin1',
    'application/jsonp',
    'text/json, application/json',
  ])('is refused by its name: %s', async type => {
    const answer = await sent({ body: '{}', headers: { 'Content-Type': type } })
    expect(answer).toMatchObject(UNSUPPORTED)
    expect(answer.error).toContain(` ${type},`)
  })

  test.each([
    'application/json',
    'APPLICATION/JSON',
    'application/json;charset=UTF-8',
    'application/json; charset="utf-8"',
    'application/vnd.api+json',
  ])('is accepted: %s', async type => {
    expect((await sent({ body: '{}', headers: { 'Content-Type': type } })).status).toBe(200)
  })

  test('is refused if it is compressed: it could be a thousand times as large', async () => {
    const headers = { 'Content-Type': 'application/json', 'Content-Encoding': 'gzip' }
    const refused = await sent({ body: gzipSync('{}'), headers })
    expect(refused).toMatchObject({ ...UNSUPPORTED, error: expect.stringContaining(' gzip,') })
    const plain = { 'Content-Type': 'application/json', 'Content-Encoding': 'identity' }
    expect((await sent({ body: '{}', headers: plain })).status).toBe(200)
  })
})

test('a truncated body is a client error', async () => {
  const h = await createTestService()
  addGuardedRoute(h, '/v1/room')
  const body = new ReadableStream({
    start: controller => controller.enqueue(new Uint8Array(10)),
    pull: controller => controller.error(new Error('aborted')),
  })
  const request = new Request('http://ev.test/v1/room', {
    method: 'POST',
    body,
    duplex: 'half',
    headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${h.key}` },
  } as RequestInit)
  expect((await h.app.request(request)).status).toBe(400)
  expect(h.lines.filter(({ level }) => level === 'error')).toEqual([])
})

test('a body in many chunks is read as one', async () => {
  const h = await createTestService()
  addGuardedRoute(h, '/v1/room')
  const bytes = new TextEncoder().encode('{"a":"é"}')
  const request = new Request('http://ev.test/v1/room', {
    method: 'POST',
    body: chunked(...[...bytes].map(byte => Uint8Array.of(byte))),
    duplex: 'half',
    headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${h.key}` },
  } as RequestInit)
  expect(await (await h.app.request(request)).json()).toMatchObject({ body: { a: 'é' } })
})

test('over the network a body is what a header announces', async () => {
  const h = await createTestService()
  addGuardedRoute(h, '/v1/room')
  const send = (headers: Record<string, string>) =>
    h.app.request(
      '/v1/room',
      // The adapter passes a stream for each POST, even if it is empty.
      {
        method: 'POST',
        body: new Blob([]).stream(),
        duplex: 'half',
        headers: { Authorization: `Bearer ${h.key}`, ...headers },
      } as RequestInit,
      { incoming: { httpVersionMajor: 1 } },
    )
  expect((await send({})).status).toBe(200)
  expect((await send({ 'Content-Length': '9' })).status).toBe(415)
  expect((await send({ 'Transfer-Encoding': 'chunked' })).status).toBe(415)
})
