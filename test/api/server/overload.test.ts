import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { setTimeout as wait } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { ApiError } from '../../../src/api/errors/api-error.ts'
import { openHttpServer, parseAnswer } from '../../support/http-server.ts'
import { recordingLog } from '../../support/log.ts'

const OK = 'GET /ok HTTP/1.1\r\nHost: ev.example\r\n\r\n'
const post = (path: string, length: number) =>
  `POST ${path} HTTP/1.1\r\nHost: ev.example\r\nContent-Length: ${length}\r\n\r\n`

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
      if (isBusy) return new ApiError('service_unavailable', 'Too many', { retryAfterS: 1 })
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

test('a body that arrives after its response is read, and the next request is answered', async () => {
  const server = await openHttpServer({
    paths: app => app.post('/refused', c => c.json({ code: 'service_unavailable' }, 503)),
  })
  const socket = await server.open()
  let received = ''
  socket.on('data', chunk => {
    received += chunk
  })
  socket.write(`${post('/refused', 2_000_000)}first`)
  await expect.poll(() => received).toMatch(/^HTTP\/1\.1 503 /)
  // A slow client: the adapter of Hono would reset it after 500 ms.
  await wait(600)
  socket.write('x'.repeat(2_000_000 - 'first'.length))
  socket.write(OK)
  await expect.poll(() => received).toMatch(/HTTP\/1\.1 200 /)
})
