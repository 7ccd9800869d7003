import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, expect, test } from 'vitest'
import { EvError } from '../../../src/platform/error.ts'
import { fakeClock } from '../../support/clock.ts'
import {
  openHttpServer,
  parseAnswer,
  type TestHttpServerOptions,
} from '../../support/http-server.ts'
import { drainEventLoop } from '../../support/wait.ts'

const GET = (path: string) => `GET ${path} HTTP/1.1\r\nHost: ev.example\r\n\r\n`

/** A server whose /wait answers on demand. */
async function openWaiting(options: TestHttpServerOptions = {}) {
  const [arrived, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const server = await openHttpServer({
    paths: app =>
      app.get('/wait', async c => {
        arrived.resolve()
        await released.promise
        return c.json({ ok: true })
      }),
    ...options,
  })
  return { server, release: released.resolve, arrived: arrived.promise }
}

describe('a server that stops', () => {
  test('answers pending requests with Connection: close and stops listening', async () => {
    const { server, release, arrived } = await openWaiting()
    const asked = server.send(GET('/wait'))
    await arrived
    const stopped = server.stop(10_000)
    await drainEventLoop()
    const late = connect(server.port, '127.0.0.1')
    expect((await once(late, 'error'))[0]).toMatchObject({ code: 'ECONNREFUSED' })
    release()
    const answer = parseAnswer(await asked)
    expect(answer).toMatchObject({ status: 200, json: { ok: true }, rest: '' })
    expect(answer.headers.connection).toBe('close')
    await stopped
  })

  test('answers requests that were sent but not read yet', async () => {
    const { server } = await openWaiting()
    const kept = await Promise.all(Array.from({ length: 20 }, () => server.open()))
    for (const socket of kept) {
      socket.write(GET('/ok'))
      await once(socket, 'data')
    }
    // Still in kernel buffers.
    for (const socket of kept) socket.write(GET('/ok'))
    const answers = kept.map(socket => text(socket))
    await server.stop(10_000)
    for (const answer of await Promise.all(answers)) {
      expect(parseAnswer(answer)).toMatchObject({ status: 200, headers: { connection: 'close' } })
    }
  })

  test('closes idle connections after 200 ms and partially sent requests after a second', async () => {
    const clock = fakeClock()
    const { server } = await openWaiting({ clock })
    const kept = await server.open()
    kept.write(GET('/ok'))
    await once(kept, 'data')
    const half = await server.open()
    half.write('GET /ok HTTP/1.1\r\n')
    const keptClosed = text(kept)
    const halfClosed = text(half)
    const stopped = server.stop(10_000)
    await drainEventLoop()
    await clock.advance(200)
    expect(await keptClosed).toBe('')
    await clock.advance(800)
    expect(await halfClosed).toBe('')
    await stopped
  })

  test('answers a request that was in transit on an idle connection', async () => {
    const clock = fakeClock()
    const { server } = await openWaiting({ clock })
    const socket = await server.open()
    socket.write(GET('/ok'))
    await once(socket, 'data')
    const received = text(socket)
    const stopped = server.stop(10_000)
    await drainEventLoop()
    await clock.advance(199)
    socket.write(GET('/ok'))
    expect(parseAnswer(await received)).toMatchObject({
      status: 200,
      headers: { connection: 'close' },
    })
    await stopped
  })

  test('answers one more request of a persistent connection as its last one', async () => {
    const { server, release, arrived } = await openWaiting()
    const socket = await server.open()
    const received = text(socket)
    socket.write(GET('/wait'))
    await arrived
    const stopped = server.stop(10_000)
    socket.write(GET('/ok'))
    release()
    await stopped
    expect((await received).match(/HTTP\/1\.1 200/g)).toHaveLength(1)
  })

  test('leaves no timer, which would keep the process alive', async () => {
    const clock = fakeClock()
    const { server } = await openWaiting({ clock })
    await server.stop(10_000)
    expect(clock.pending).toBe(0)
  })

  test('waits no longer than its grace period', async () => {
    const clock = fakeClock()
    const { server, arrived } = await openWaiting({ clock })
    const asked = server.send(GET('/wait'))
    await arrived
    const stopped = server.stop(10_000)
    await drainEventLoop()
    await clock.advance(10_000)
    await stopped
    expect(await asked).toBe('')
  })

  test('can be stopped twice, and the shorter grace period applies', async () => {
    const clock = fakeClock()
    const { server, arrived } = await openWaiting({ clock })
    const asked = server.send(GET('/wait'))
    await arrived
    const stopped = [server.stop(60_000), server.stop(20)]
    await drainEventLoop()
    await clock.advance(20)
    await Promise.all(stopped)
    expect(await asked).toBe('')
  })
})

describe('a server that cannot listen', () => {
  test('says that the port is already in use, and what to do', async () => {
    const { port } = await openHttpServer()
    const second = openHttpServer({ port })
    await expect(second).rejects.toBeInstanceOf(EvError)
    await expect(second).rejects.toMatchObject({
      code: 'io',
      message: `ev cannot listen on 127.0.0.1:${port}: the port is already in use. Stop the other program, or choose another port with --listen.`,
    })
  })

  test('says that this machine has no such address', async () => {
    await expect(openHttpServer({ host: '192.0.2.1' })).rejects.toMatchObject({
      code: 'io',
      message: expect.stringMatching(/192\.0\.2\.1:0: this machine has no such address\. Choose/),
    })
  })
})
