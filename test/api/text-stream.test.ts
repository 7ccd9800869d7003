import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { setImmediate } from 'node:timers/promises'
import type { Context, Hono } from 'hono'
import { describe, expect, test } from 'vitest'
import { READER_TIMEOUT_MS, textStream } from '../../src/api/text-stream.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { silentLog } from '../../src/platform/log.ts'
import { type FakeClock, fakeClock } from '../support/clock.ts'
import { openHttpServer } from '../support/http-server.ts'
import { drainEventLoop } from '../support/wait.ts'

const PIECE = 'x'.repeat(100_000)
const PIECES = 50

describe('a streamed response', () => {
  test('is complete when all of it was sent', async () => {
    const { send } = await openHttpServer({ paths: app => serve(app, pieces()) })
    const received = await send(GET)
    expect(received).toMatch(/^HTTP\/1\.1 200 /)
    expect(received.endsWith('\r\n0\r\n\r\n')).toBe(true)
    expect(received.length).toBeGreaterThan(PIECES * PIECE.length)
  })

  test('is seen as aborted when a chunk could not be produced', async () => {
    const { send } = await openHttpServer({ paths: app => serve(app, pieces(3)) })
    const received = await send(GET)
    expect(received).toMatch(/^HTTP\/1\.1 200 /)
    expect(received).not.toMatch(/\r\n0\r\n/)
    expect(received).not.toMatch(/Error/)
  })

  test('is not produced ahead of a stalled reader, which is dropped after a minute', async () => {
    const clock = fakeClock()
    let made = 0
    const counted = async function* () {
      for (; made < 1_000; made++) yield PIECE
    }
    const { open } = await openHttpServer({
      paths: app => serve(app, counted(), clock),
    })
    const socket = await open()
    socket.pause()
    socket.write(GET)
    await untilUnchanged(() => made)
    // The amount that the kernel and the socket can buffer.
    expect(made).toBeLessThan(200)
    const closed = once(socket, 'close')
    await clock.advance(READER_TIMEOUT_MS)
    socket.resume()
    await closed
    expect(made).toBeLessThan(200)
    expect(clock.pending).toBe(0)
  })
})

describe('a response that nobody reads gives its chunks back at once', () => {
  const counted = (clock: FakeClock) => {
    const returned = Promise.withResolvers<void>()
    const chunks = {
      next: async () => ({ value: PIECE }),
      return: async () => returned.resolve(),
    }
    const deps = { clock, log: silentLog }
    return {
      returned: returned.promise,
      respond: (c: unknown) => textStream(c as Context, deps, chunks),
    }
  }

  test('because the client left before it began', async () => {
    const clock = fakeClock()
    const { returned, respond } = counted(clock)
    const asked = Promise.withResolvers<void>()
    const { open } = await openHttpServer({
      paths: app =>
        app.get('/long', async c => {
          const left = once(c.req.raw.signal, 'abort')
          asked.resolve()
          await left
          return c.body(respond(c))
        }),
    })
    const socket = await open()
    socket.write(GET)
    await asked.promise
    socket.destroy()
    await returned
    expect(clock.pending).toBe(0)
  })

  test('because it answers HEAD', async () => {
    const clock = fakeClock()
    const { returned, respond } = counted(clock)
    const { send } = await openHttpServer({
      paths: app => app.get('/long', c => c.body(respond(c))),
    })
    expect(await send(GET.replace('GET', 'HEAD'))).toMatch(/^HTTP\/1\.1 200 /)
    await returned
    expect(clock.pending).toBe(0)
  })
})

test('has few chunks produced in each turn of the event loop for a hundred readers', async () => {
  let made = 0
  const counted = async function* () {
    for (let n = 0; n < 5; n++) {
      made++
      yield 'piece'
    }
  }
  const c = { get: () => '', req: { method: 'GET' } } as never as Context
  const streams = Array.from({ length: 100 }, () =>
    text(textStream(c, { clock: fakeClock(), log: silentLog }, counted())),
  )
  let most = 0
  for (let before = made; made < 500; before = made) {
    await setImmediate()
    most = Math.max(most, made - before)
  }
  expect(most).toBeLessThan(10)
  expect(new Set(await Promise.all(streams))).toEqual(new Set(['piece'.repeat(5)]))
})

const GET = 'GET /long HTTP/1.1\r\nHost: ev.example\r\nConnection: close\r\n\r\n'

/** The chunks of a long response; it fails before one of them. */
async function* pieces(failing = Number.POSITIVE_INFINITY): AsyncGenerator<string> {
  for (let n = 0; n < PIECES; n++) {
    if (n === failing) throw new Error('the disk is gone')
    yield PIECE
  }
}

function serve(app: Hono, made: AsyncGenerator<string>, clock: FakeClock | null = null): void {
  const deps = { clock: clock ?? systemClock, log: silentLog }
  app.get('/long', c => c.body(textStream(c as never as Context, deps, made)))
}

/** Waits until a number is unchanged for some turns of the event loop. */
async function untilUnchanged(number: () => number): Promise<void> {
  for (let last = -1, same = 0; same < 5; same = number() === last ? same + 1 : 0) {
    last = number()
    await drainEventLoop()
  }
}
