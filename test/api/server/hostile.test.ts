import type { Context } from 'hono'
import { describe, expect, test } from 'vitest'
import type { Env } from '../../../src/api/context.ts'
import { getHeader } from '../../../src/api/headers.ts'
import { openHttpServer, parseAnswer } from '../../support/http-server.ts'

const get = (path: string, ...headers: readonly string[]) =>
  `GET ${path} HTTP/1.1\r\n${['Host: ev.example', ...headers].map(one => `${one}\r\n`).join('')}\r\n`

/** Requests that must be refused before the app runs. */
const HOSTILE: [name: string, sent: string | Uint8Array, status: number, code: string][] = [
  ['random bytes', Uint8Array.from([0x16, 3, 1, 0, 250, 1, 0]), 400, 'invalid_request'],
  ['HTTP/0.9', 'GET /ok\r\n\r\n', 400, 'invalid_request'],
  ['an unknown HTTP version', 'GET /ok HTTP/3.7\r\n\r\n', 400, 'invalid_request'],
  ['an unknown method', 'BREW /ok HTTP/1.1\r\nHost: ev.example\r\n\r\n', 400, 'invalid_request'],
  ['a bare line feed', 'GET /ok HTTP/1.1\nHost: ev.example\n\n', 400, 'invalid_request'],
  ['a blank before the colon', get('/ok', 'A : b'), 400, 'invalid_request'],
  ['a NUL in a header', get('/ok', 'A: b\0c'), 400, 'invalid_request'],
  ['a folded header', get('/ok', 'A: b', ' c: d'), 400, 'invalid_request'],
  ['headers of 20 KB', get('/ok', `A: ${'x'.repeat(20_000)}`), 431, 'headers_too_large'],
  ['a target of 20 KB', get(`/${'x'.repeat(20_000)}`), 431, 'headers_too_large'],
  [
    '3,000 headers',
    get('/ok', ...Array.from({ length: 3_000 }, () => 'a:b')),
    431,
    'headers_too_large',
  ],
  [
    '101 headers',
    get('/ok', ...Array.from({ length: 100 }, () => 'a:b')),
    431,
    'headers_too_large',
  ],
  ['no Host', 'GET /ok HTTP/1.1\r\n\r\n', 400, 'invalid_request'],
  ['no Host in HTTP/1.1 at a health path', 'GET /livez HTTP/1.1\r\n\r\n', 400, 'invalid_request'],
  ['no Host in HTTP/1.0', 'GET /ok HTTP/1.0\r\n\r\n', 400, 'invalid_request'],
  ['two Hosts', get('/ok', 'Host: other.example'), 400, 'invalid_request'],
  ['an empty Host', 'GET /ok HTTP/1.1\r\nHost:\r\n\r\n', 400, 'invalid_request'],
  ['an invalid Host', 'GET /ok HTTP/1.1\r\nHost: a b\r\n\r\n', 400, 'invalid_request'],
  [
    'a Host in hexadecimal notation',
    'GET /ok HTTP/1.1\r\nHost: 0x7f.1\r\n\r\n',
    400,
    'invalid_request',
  ],
  ['a Host with a path', 'GET /ok HTTP/1.1\r\nHost: a/b\r\n\r\n', 400, 'invalid_request'],
  ['a Host with a user', 'GET /ok HTTP/1.1\r\nHost: a@b\r\n\r\n', 400, 'invalid_request'],
  [
    'a Host with a port above 65535',
    'GET /ok HTTP/1.1\r\nHost: a:65536\r\n\r\n',
    400,
    'invalid_request',
  ],
  ['an absolute target', get('http://ev.example/ok'), 400, 'invalid_request'],
  ['a target of two slashes', get('//ok'), 400, 'invalid_request'],
  ['a target with %00', get('/ok%00'), 400, 'invalid_request'],
  ['a target with a segment of dots', get('/v1/../ok'), 400, 'invalid_request'],
  ['a target with encoded dots', get('/v1/%2E%2e/ok'), 400, 'invalid_request'],
  ['a target that ends with a dot', get('/ok/.?a'), 400, 'invalid_request'],
  ['a target with a backslash', get('/\\ok'), 400, 'invalid_request'],
  ['an asterisk', 'OPTIONS * HTTP/1.1\r\nHost: ev.example\r\n\r\n', 400, 'invalid_request'],
  ['CONNECT', 'CONNECT a.example:25 HTTP/1.1\r\nHost: a\r\n\r\n', 405, 'method_not_allowed'],
  ['an expectation', get('/ok', 'Expect: x'), 417, 'expectation_failed'],
  [
    'two Content-Lengths',
    'POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab',
    400,
    'invalid_request',
  ],
  [
    'a negative Content-Length',
    'POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n',
    400,
    'invalid_request',
  ],
  [
    'Transfer-Encoding and Content-Length',
    'POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    400,
    'invalid_request',
  ],
  [
    'a Transfer-Encoding that does not end in chunked',
    'POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n',
    400,
    'invalid_request',
  ],
  [
    'a chunk with an invalid size',
    'POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n',
    400,
    'invalid_request',
  ],
  [
    'a chunk with 20 KB of extensions',
    `POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;${'x'.repeat(20_000)}\r\na\r\n`,
    413,
    'payload_too_large',
  ],
]

describe('a malformed request', () => {
  test.each(HOSTILE)('%s is refused as JSON, and the connection is closed', async (...row) => {
    const [, sent, status, code] = row
    const server = await openHttpServer()
    const answer = parseAnswer(await server.send(sent))
    expect(answer).toMatchObject({ status, rest: '', json: { success: false, code } })
    expect(answer.json.error).toMatch(/^[A-Z].+\.$/)
    expect(answer.json.request_id).toMatch(/^req_[a-z0-9]{20}$/)
    expect(answer.headers).toMatchObject({
      'content-type': 'application/json',
      'x-ratelimit-limit': '100',
      'x-request-id': answer.json.request_id,
      connection: 'close',
    })
    expect(server.asked.filter(path => path !== '/echo')).toEqual([])
  })

  test('with TRACE gets nothing of itself back', async () => {
    const server = await openHttpServer()
    const sent = 'TRACE /livez HTTP/1.1\r\nHost: a\r\nCookie: c4nary\r\nConnection: close\r\n\r\n'
    const received = await server.send(sent)
    expect(parseAnswer(received).status).toBe(404)
    expect(received).not.toContain('c4nary')
  })

  test('discards what follows it on the connection', async () => {
    const server = await openHttpServer()
    const received = await server.send(get('//ok'), get('/ok'), `BREW x\r\n\r\n${get('/ok')}`)
    expect(parseAnswer(received)).toMatchObject({ status: 400, rest: '' })
    expect(server.asked).toEqual([])
  })

  test('after a valid one does not prevent its response, and closes the connection', async () => {
    const server = await openHttpServer()
    const answer = parseAnswer(
      await server.send(`${get('/ok')}BREW /ok HTTP/1.1\r\n\r\n${get('/ok')}`),
    )
    expect(answer).toMatchObject({ status: 200, json: { ok: true }, rest: '' })
    expect(server.asked).toEqual(['/ok'])
  })

  test('is not one with dots in a name or in the query', async () => {
    const server = await openHttpServer()
    for (const path of ['/...', '/.well-known', '/a.b', '/a?next=/../b']) {
      const answer = parseAnswer(await server.send(get(path, 'Connection: close')))
      expect(answer, path).toMatchObject({ status: 404 })
    }
  })

  test('is not one with a name, an IPv4 or an IPv6 address as its Host', async () => {
    const server = await openHttpServer()
    for (const host of [
      'EV.example',
      'localhost:8080',
      '192.0.2.1:65535',
      '[::1]',
      '[2001:db8::1]:80',
    ]) {
      const sent = `GET /ok?a=b%20c&d=[1] HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`
      expect(parseAnswer(await server.send(sent)), host).toMatchObject({ status: 200 })
    }
  })
})

describe('pipelining', () => {
  test('sends responses in the order of the requests', async () => {
    const server = await openHttpServer()
    const received = await server.send(get('/ok'), get('/a'), get('/ok', 'Connection: close'))
    expect(received.match(/HTTP\/1\.1 (\d+)/g)).toEqual([
      'HTTP/1.1 200',
      'HTTP/1.1 404',
      'HTTP/1.1 200',
    ])
  })

  test('closes a connection after its maximum of requests', async () => {
    const server = await openHttpServer({ limits: { requestsPerConnection: 3 } })
    const received = await server.send(get('/ok').repeat(10))
    expect(received.match(/HTTP\/1\.1 200/g)).toHaveLength(3)
    expect(received.match(/^Connection: .*$/gm)).toEqual([
      'Connection: keep-alive',
      'Connection: keep-alive',
      'Connection: close',
    ])
    expect(server.asked).toHaveLength(3)
  })
})

test('a repeated header has all of its values, as in a Request', async () => {
  const server = await openHttpServer({
    paths: app =>
      app.get('/headers', c =>
        c.json(
          REPEATABLE.map(name => [
            getHeader(c as unknown as Context<Env>, name),
            c.req.header(name),
          ]),
        ),
      ),
  })
  const sent = REPEATABLE.flatMap(name => [`${name}: a`, `${name}: b`])
  const received = await server.send(get('/headers', ...sent, 'Connection: close'))
  expect(parseAnswer(received).json).toEqual(REPEATABLE.map(() => ['a, b', 'a, b']))
})

const REPEATABLE = [
  ...(['authorization', 'content-type', 'origin', 'referer', 'accept'] as const),
  ...(['idempotency-key', 'x-ev-sandbox', 'x-forwarded-for', 'x-reacher-secret'] as const),
] as const
