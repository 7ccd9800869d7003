import { once } from 'node:events'
import type { Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as wait } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { SERVER_LIMITS } from '../../../src/api/server/limits.ts'
import { fakeClock } from '../../support/clock.ts'
import { openHttpServer, parseAnswer } from '../../support/http-server.ts'
import { drainEventLoop, waitUntil } from '../../support/wait.ts'

const GET = (path: string, ...headers: readonly string[]) => requestOf('GET', path, headers)
const POST = (path: string, ...headers: readonly string[]) => requestOf('POST', path, headers)

const requestOf = (method: string, path: string, headers: readonly string[]) =>
  `${method} ${path} HTTP/1.1\r\n${['Host: ev.example', ...headers].map(one => `${one}\r\n`).join('')}\r\n`

/** Sends byte by byte until the server closes the connection, and returns its response. */
async function trickle(socket: Socket, bytes: string): Promise<string> {
  const received = text(socket)
  let isDone = false
  received.finally(() => {
    isDone = true
  })
  for (const byte of bytes) {
    if (isDone) break
    socket.write(byte)
    await wait(5)
  }
  return received
}

const blockEventLoop = (ms: number) =>
  void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)

/** Node has its own timers for headers and idle time, which run in real time here. */
describe('a slow client', () => {
  test('that sends a header byte by byte gets a 408 and is disconnected', async () => {
    const server = await openHttpServer({ limits: { headersMs: 100, checkMs: 10 } })
    const bytes = `GET /ok HTTP/1.1\r\nA: ${'x'.repeat(2_000)}`
    const answer = parseAnswer(await trickle(await server.open(), bytes))
    expect(answer).toMatchObject({ status: 408, json: { code: 'request_timeout' } })
    expect(answer.headers).toMatchObject({ connection: 'close', 'x-ratelimit-limit': '100' })
  })

  test('that sends nothing is disconnected', async () => {
    const server = await openHttpServer({ limits: { headersMs: 50, checkMs: 10 } })
    expect(parseAnswer(await server.send())).toMatchObject({ status: 408 })
  })

  test('that sends a body byte by byte gets a 408 and is disconnected', async () => {
    const server = await openHttpServer({ limits: { bodyMs: 100 } })
    const socket = await server.open()
    socket.write(POST('/echo', 'Content-Length: 3000'))
    const answer = parseAnswer(await trickle(socket, 'x'.repeat(2_000)))
    expect(answer).toMatchObject({ status: 408, json: { code: 'request_timeout' }, rest: '' })
    expect(server.asked).toEqual(['/echo'])
  })

  test('has more time for a list', async () => {
    const clock = fakeClock()
    const server = await openHttpServer({ clock })
    const socket = await server.open()
    const received = text(socket)
    socket.write(`${POST('/list', 'Content-Length: 10', 'Connection: close')}first`)
    await waitUntil(() => server.asked.length === 1)
    await clock.advance(SERVER_LIMITS.listBodyMs - 1)
    socket.write('later')
    expect(parseAnswer(await received)).toMatchObject({ status: 200, json: { bytes: 10 } })
  })

  test.each([
    ['Content-Length: 2000000', 408],
    ['Transfer-Encoding: chunked', 408],
    ['Content-Length: 1000', 200],
  ])('that sends a list slowly is disconnected if it is large: %s', async (length, status) => {
    const clock = fakeClock()
    const server = await openHttpServer({ clock })
    const socket = await server.open()
    const received = text(socket)
    socket.write(`${POST('/list', length, 'Connection: close')}`)
    const isChunked = length.startsWith('T')
    socket.write(isChunked ? '3\r\nabc\r\n' : 'abc')
    await waitUntil(() => server.asked.length === 1)
    await clock.advance(SERVER_LIMITS.slowBodyMs)
    if (status === 200) socket.write('x'.repeat(997))
    const { json, ...answer } = parseAnswer(await received)
    expect(answer.status).toBe(status)
    if (status === 408) expect(json).toMatchObject({ error: /too slowly/ })
  })

  test('that sends a large list fast enough has all of its time', async () => {
    const clock = fakeClock()
    let received = 0
    const server = await openHttpServer({
      clock,
      paths: app =>
        app.post('/list/file', async c => {
          for await (const bytes of c.req.raw.body ?? []) received += bytes.length
          return c.json({ bytes: received })
        }),
    })
    const { slowBodyMs, bodyBytesPerSecondMin } = SERVER_LIMITS
    // What arrives with the headers is not counted.
    const part = 'x'.repeat((2 * bodyBytesPerSecondMin * slowBodyMs) / 1_000)
    const length = part.length * 13
    expect(length).toBeGreaterThan(1024 * 1024)
    const socket = await server.open()
    const answer = text(socket)
    socket.write(POST('/list/file', `Content-Length: ${length}`, 'Connection: close'))
    for (let n = 1; n <= 11; n++) {
      socket.write(part)
      await waitUntil(() => received === part.length * n)
      await clock.advance(slowBodyMs)
    }
    socket.write(part + part)
    expect(parseAnswer(await answer)).toMatchObject({ status: 200, json: { bytes: length } })
  })

  test('is also disconnected when the time for a list is over', async () => {
    const clock = fakeClock()
    const server = await openHttpServer({ clock })
    const socket = await server.open()
    const received = text(socket)
    socket.write(`${POST('/list', 'Content-Length: 10')}first`)
    await waitUntil(() => server.asked.length === 1)
    await clock.advance(SERVER_LIMITS.listBodyMs)
    expect(parseAnswer(await received)).toMatchObject({ status: 408 })
  })

  test('that sends no further request is disconnected after the keep-alive time', async () => {
    const server = await openHttpServer({ limits: { keepAliveMs: 50, keepAliveBufferMs: 1 } })
    const received = await server.send(GET('/ok'))
    expect(parseAnswer(received)).toMatchObject({ status: 200, rest: '' })
  })

  test('whose request arrived in time is answered, even if the service reads it late', async () => {
    const server = await openHttpServer({ limits: { keepAliveMs: 50, keepAliveBufferMs: 1 } })
    const socket = await server.open()
    const received = text(socket)
    socket.write(GET('/ok'))
    await waitUntil(() => socket.bytesRead > 0)
    socket.write(GET('/ok', 'Connection: close'))
    blockEventLoop(200)
    const first = parseAnswer(await received)
    expect(first.status).toBe(200)
    expect(parseAnswer(first.rest)).toMatchObject({ status: 200, rest: '' })
  })

  test('that does not read its response is disconnected', async () => {
    const cancelled = Promise.withResolvers<void>()
    const server = await openHttpServer({
      limits: { stallMs: 50 },
      paths: app =>
        app.get('/long', () => {
          const pull = (to: ReadableStreamDefaultController) =>
            to.enqueue(new Uint8Array(1_000_000))
          return new Response(new ReadableStream({ pull, cancel: () => cancelled.resolve() }))
        }),
    })
    const socket = await server.open()
    socket.pause()
    socket.write(GET('/long'))
    expect(await cancelled.promise).toBeUndefined()
  })

  test('that waits for a response is not disconnected, however long that takes', async () => {
    const server = await openHttpServer({
      limits: { stallMs: 10 },
      paths: app => app.get('/wait', async c => wait(100, c.json({ ok: true }))),
    })
    const received = await server.send(GET('/wait', 'Connection: close'))
    expect(parseAnswer(received)).toMatchObject({ status: 200, json: { ok: true } })
  })
})

describe('without a limit', () => {
  test('a chunked body is cut off after its timeout, and memory does not grow', async () => {
    const clock = fakeClock()
    const server = await openHttpServer({
      clock,
      paths: app =>
        app.post('/sink', async c => {
          for await (const _ of c.req.raw.body as ReadableStream<Uint8Array>);
          return c.json({})
        }),
    })
    const socket = await server.open()
    const received = text(socket)
    socket.write(POST('/sink', 'Transfer-Encoding: chunked'))
    const closed = once(socket, 'close')
    const chunk = Buffer.from(`10000\r\n${'x'.repeat(0x10000)}\r\n`)
    const before = await memoryHeld()
    for (let sent = 0; sent < 50_000_000; sent += chunk.length) {
      if (!socket.write(chunk)) await Promise.race([once(socket, 'drain'), closed])
    }
    expect((await memoryHeld()) - before).toBeLessThan(25_000_000)
    await clock.advance(SERVER_LIMITS.bodyMs)
    expect(parseAnswer(await received)).toMatchObject({ status: 408, rest: '' })
  })

  test('a response stream that fails is seen as aborted, not as complete', async () => {
    const server = await openHttpServer({
      paths: app =>
        app.get('/broken', () => {
          let rows = 0
          const pull = async (to: ReadableStreamDefaultController) => {
            await drainEventLoop()
            if (rows++ < 3) to.enqueue(new TextEncoder().encode('row\r\n'))
            else to.error(new Error('the disk is gone'))
          }
          return new Response(new ReadableStream({ pull }))
        }),
    })
    const received = await server.send(GET('/broken'))
    expect(received).toContain('row')
    expect(received).not.toContain('disk')
    expect(received.endsWith('0\r\n\r\n')).toBe(false)
  })
})

test('a compressed body is not decompressed', async () => {
  const server = await openHttpServer()
  const bomb = gzipSync(Buffer.alloc(10_000_000))
  const head = POST(
    '/echo',
    'Content-Encoding: gzip',
    `Content-Length: ${bomb.length}`,
    'Connection: close',
  )
  expect(parseAnswer(await server.send(head, bomb)).json).toEqual({ bytes: bomb.length })
})

test.each([
  ['/livez', 404],
  ['/readyz', 404],
  ['/ok', 400],
])(
  'HTTP/1.0 without Host, as sent by health checks, reaches the app at %s: %i',
  async (path, status) => {
    const server = await openHttpServer()
    expect(parseAnswer(await server.send(`GET ${path} HTTP/1.0\r\n\r\n`))).toMatchObject({ status })
    expect(server.asked).toEqual(status === 404 ? [path] : [])
  },
)

describe('plain HTTP', () => {
  test('is refused for clients that must use TLS', async () => {
    const server = await openHttpServer({ mayBePlain: ip => ip !== '127.0.0.1' })
    const answer = parseAnswer(await server.send(GET('/ok')))
    expect(answer).toMatchObject({ status: 403, json: { code: 'ip_restricted' } })
    expect(answer.headers).toMatchObject({ connection: 'close' })
    expect(server.asked).toEqual([])
  })

  test.each([
    ['http', 403],
    ['HTTP, https', 403],
    ['https', 200],
    ['https, http', 200],
    [null, 200],
  ])('according to the proxy (%s) is handled as such: %i', async (proto, status) => {
    const server = await openHttpServer({ mayBePlain: (_, forwarded) => forwarded !== 'http' })
    const header = proto === null ? [] : [`X-Forwarded-Proto: ${proto}`]
    const request = GET('/ok', ...header, 'Connection: close')
    expect(parseAnswer(await server.send(request))).toMatchObject({ status })
  })
})

/** Reachable bytes only, as garbage may stay in memory for any time. */
async function memoryHeld(): Promise<number> {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  collect()
  await drainEventLoop()
  collect()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}
