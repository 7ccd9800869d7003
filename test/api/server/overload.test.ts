import { once } from 'node:events'
import type { Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as wait } from 'node:timers/promises'
import type { Hono } from 'hono'
import { describe, expect, test } from 'vitest'
import { ApiError } from '../../../src/api/errors/api-error.ts'
import { fakeClock } from '../../support/clock.ts'
import { openHttpServer, parseAnswer } from '../../support/http-server.ts'
import { recordingLog } from '../../support/log.ts'
import { waitUntil } from '../../support/wait.ts'

const OK = 'GET /ok HTTP/1.1\r\nHost: ev.example\r\n\r\n'
const post = (path: string, length: number) =>
  `POST ${path} HTTP/1.1\r\nHost: ev.example\r\nContent-Length: ${length}\r\n\r\n`
const TOO_MANY = new ApiError('service_unavailable', 'Too many', { retryAfterS: 1 })

test('a connection above the limit gets a 503 and is closed, not reset', async () => {
  const { log, lines } = recordingLog()
  const limits = { connectionsMax: 2, refusedConnectionsMax: 5 }
  const server = await openHttpServer({ limits, log })
  const served = [await server.open(), await server.open()]
  for (const socket of served) {
    socket.write(OK)
    await once(socket, 'data')
  }
  for (const request of [OK, `${post('/echo', 1_000)}half`]) {
    const answer = parseAnswer(await server.send(request))
    expect(answer).toMatchObject({ status: 503, json: { code: 'service_unavailable' }, rest: '' })
    expect(answer.headers).toMatchObject({ 'retry-after': '1', 'x-ratelimit-limit': '100' })
  }
  expect(server.asked).toEqual(['/ok', '/ok'])
  expect(lines).toMatchObject([{ level: 'warn', message: 'connections refused' }])
  served[0]?.destroy()
  await expect
    .poll(() => server.send(OK.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n')))
    .toMatch(/^HTTP\/1\.1 200 /)
})

test('a connection above the limit without a request is closed after a second', async () => {
  const limits = { connectionsMax: 0, refusedConnectionsMax: 5, refusedMs: 20 }
  const server = await openHttpServer({ limits })
  expect(await text(await server.open())).toBe('')
})

test('an overload refusal bypasses the app and keeps the connection open', async () => {
  let isBusy = true
  const server = await openHttpServer({
    admission(_request, _response, start) {
      if (isBusy) return TOO_MANY
      start()
      return null
    },
  })
  const socket = await server.open()
  socket.write(OK)
  const [refused] = await once(socket, 'data')
  expect(parseAnswer(String(refused))).toMatchObject({
    status: 503,
    headers: { 'retry-after': '1' },
  })
  expect(server.asked).toEqual([])
  isBusy = false
  socket.write(OK)
  const [served] = await once(socket, 'data')
  expect(parseAnswer(String(served))).toMatchObject({ status: 200 })
})

describe('a request that is answered before its body has arrived', () => {
  const refused = (app: Hono) =>
    app.post('/refused', c => c.json({ code: 'service_unavailable' }, 503))

  /** Everything that is received until the connection is closed; throws if it is reset. */
  async function receive(socket: Socket): Promise<string> {
    let received = ''
    socket.allowHalfOpen = true
    socket.on('end', () => socket.end())
    socket.on('data', data => {
      received += data
    })
    const [isReset] = await once(socket, 'close')
    expect(isReset).toBe(false)
    return received
  }

  // A proxy may reuse a connection whose request it has cancelled: what it sends next must not be
  // taken for the rest of that body, nor what follows the body for a request.
  test('is the last one of a client that keeps the connection', async () => {
    const server = await openHttpServer({ paths: refused })
    const socket = await server.open()
    const received = receive(socket)
    socket.write(`${post('/refused', 2_000_000)}first`)
    await once(socket, 'data')
    // A slow client: the adapter of Hono would reset it after 500 ms.
    await wait(600)
    socket.write('x'.repeat(2_000_000 - 'first'.length))
    socket.write(OK)
    const answer = parseAnswer(await received)
    expect(answer).toMatchObject({ status: 503, headers: { connection: 'close' }, rest: '' })
    expect(server.asked).toEqual(['/refused'])
  })

  test('has all of its body read if the client closes the connection, as nginx does', async () => {
    const server = await openHttpServer({ paths: refused })
    const socket = await server.open()
    const received = receive(socket)
    // More than the kernel buffers.
    const size = 50_000_000
    socket.write(post('/refused', size).replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'))
    await once(socket, 'data')
    const sent = await new Promise(resolve => socket.write(Buffer.alloc(size), resolve))
    expect(sent ?? null).toBeNull()
    expect(parseAnswer(await received)).toMatchObject({ status: 503, rest: '' })
  })

  test('is the last one of a client that an overload refuses', async () => {
    const server = await openHttpServer({ admission: () => TOO_MANY })
    const socket = await server.open()
    const received = receive(socket)
    socket.write(post('/echo', 10))
    await once(socket, 'data')
    socket.write(`0123456789${OK}`)
    const answer = parseAnswer(await received)
    expect(answer).toMatchObject({ status: 503, headers: { connection: 'close' }, rest: '' })
  })

  test('leaves no timer if its client disconnects, which would keep the process alive', async () => {
    const clock = fakeClock()
    const server = await openHttpServer({ paths: refused, clock })
    const socket = await server.open()
    socket.write(`${post('/refused', 2_000_000)}first`)
    await once(socket, 'data')
    await waitUntil(() => clock.pending === 1)
    socket.destroy()
    await waitUntil(() => clock.pending === 0)
  })

  test('is not one whose body was sent with the headers: the connection is kept', async () => {
    const server = await openHttpServer({
      paths: refused,
      admission(request, _response, start) {
        if (request.url === '/echo') return TOO_MANY
        start()
        return null
      },
    })
    const socket = await server.open()
    for (const path of ['/refused', '/echo', '/refused']) {
      socket.write(`${post(path, 10)}0123456789`)
      const [data] = await once(socket, 'data')
      expect(parseAnswer(String(data))).toMatchObject({
        status: 503,
        headers: { connection: 'keep-alive' },
      })
    }
  })
})
