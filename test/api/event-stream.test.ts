import { once } from 'node:events'
import { setImmediate } from 'node:timers/promises'
import { type Context, Hono } from 'hono'
import { describe, expect, test } from 'vitest'
import { eventStream, HEARTBEAT_MS, type StreamEvent } from '../../src/api/event-stream.ts'
import { READER_TIMEOUT_MS } from '../../src/api/text-stream.ts'
import { type Clock, sleep, systemClock } from '../../src/platform/clock.ts'
import { silentLog } from '../../src/platform/log.ts'
import { fakeClock } from '../support/clock.ts'
import { openHttpServer, type TestHttpServerOptions } from '../support/http-server.ts'

type Events = (disconnected: AbortSignal) => AsyncIterable<StreamEvent>

const GET = 'GET /live HTTP/1.1\r\nHost: ev.example\r\nConnection: close\r\n\r\n'

/** Idle timeout of the server, a timer of Node, which may take twice as long. */
const STALL_MS = 100

/** A clock with a heartbeat every 5 ms, shorter than the timeout `STALL_MS` of the server. */
const heartbeatClock: Clock = {
  ...systemClock,
  after: (delayMs, callback) => systemClock.after(delayMs === HEARTBEAT_MS ? 5 : delayMs, callback),
}

/** Yields an event, waits longer than the server allows, and yields another. */
const withPause: Events = async function* () {
  yield { event: 'first', data: { n: 1 } }
  await sleep(systemClock, 3 * STALL_MS)
  yield { event: 'last', data: { n: 2 } }
}

/** Yields an event, waits until the client disconnects, and yields another. */
const untilDisconnected: Events = async function* (disconnected) {
  yield { event: 'first', data: { n: 1 } }
  await once(disconnected, 'abort')
  yield { event: 'last', data: { n: 2 } }
}

describe('a stream of events', () => {
  test('starts with the reconnection time, and has each event with its data', async () => {
    const response = await asked(fakeClock(), async function* () {
      yield { event: 'step', data: { text: 'two\nlines' } }
      yield { event: 'end', data: {} }
    })
    expect(response.headers.get('Content-Type')).toBe('text/event-stream')
    expect(response.headers.get('X-Accel-Buffering')).toBe('no')
    expect(await response.text()).toBe(
      'retry: 3000\n\nevent: step\ndata: {"text":"two\\nlines"}\n\nevent: end\ndata: {}\n\n',
    )
  })

  test('without events sends a comment every fifteen seconds', async () => {
    const clock = fakeClock()
    const { promise, resolve } = Promise.withResolvers<void>()
    const response = await asked(clock, async function* () {
      await promise
      yield { event: 'late', data: {} }
    })
    const received = response.text()
    await clock.advance(2 * HEARTBEAT_MS)
    resolve()
    expect(await received).toBe('retry: 3000\n\n:\n\n:\n\nevent: late\ndata: {}\n\n')
    expect(clock.pending).toBe(0)
  })

  test('is aborted if its events fail', async () => {
    const response = await asked(fakeClock(), async function* () {
      yield { event: 'step', data: {} }
      throw new Error('the disk is gone')
    })
    await expect(response.text()).rejects.toThrow('the disk is gone')
  })

  test('notices at once that its client has disconnected, without an event', async () => {
    const clock = fakeClock()
    let isEnded = false
    const response = await asked(clock, async function* (disconnected) {
      yield { event: 'step', data: {} }
      await once(disconnected, 'abort')
      isEnded = true
    })
    const reader = response.body?.getReader()
    await reader?.read()
    await reader?.read()
    const waiting = reader?.read()
    await setImmediate()
    await reader?.cancel()
    expect(await waiting).toEqual({ done: true, value: undefined })
    await setImmediate()
    expect(isEnded).toBe(true)
    expect(clock.pending).toBe(0)
  })

  test('that is never read is dropped after a minute', async () => {
    const clock = fakeClock()
    let receivedSignal: AbortSignal | null = null
    await asked(clock, disconnected => {
      receivedSignal = disconnected
      return untilDisconnected(disconnected)
    })
    await clock.advance(READER_TIMEOUT_MS - 1)
    expect(receivedSignal).toMatchObject({ aborted: false })
    await clock.advance(1)
    expect(receivedSignal).toMatchObject({ aborted: true })
    expect(clock.pending).toBe(0)
  })

  test('is not sent for HEAD, which would never end it', async () => {
    const app = appOf(fakeClock(), () => expect.fail('nobody listens'))
    const response = await app.request('/live', { method: 'HEAD' })
    expect(response.headers.get('Content-Type')).toBe('text/event-stream')
  })
})

describe('a stream that is idle for longer than the timeout of the server', () => {
  test('is kept open by its comments', async () => {
    const live = await openStream(heartbeatClock, withPause)
    const received = await live.send(GET)
    expect(received).toContain('event: last')
    expect(received).toContain(':\n\n')
    expect(received.endsWith('\r\n0\r\n\r\n')).toBe(true)
    const mute = await openStream(systemClock, untilDisconnected)
    const cut = await mute.send(GET)
    expect(cut).toContain('event: first')
    expect(cut).not.toContain('event: last')
  })
})

test('ends when its client disconnects', async () => {
  const ended = Promise.withResolvers<void>()
  const { open } = await openStream(systemClock, async function* (disconnected) {
    yield { event: 'first', data: {} }
    await once(disconnected, 'abort')
    ended.resolve()
  })
  const socket = await open()
  socket.write(GET)
  await once(socket, 'data')
  socket.destroy()
  await ended.promise
})

const openStream = (clock: Clock, events: Events, options: TestHttpServerOptions = {}) =>
  openHttpServer({
    limits: { stallMs: STALL_MS },
    paths: app => app.get('/live', c => streamTo(c as never as Context, clock, events)),
    ...options,
  })

const streamTo = (c: Context, clock: Clock, events: Events) =>
  eventStream(c, { clock, log: silentLog }, events)

const appOf = (clock: Clock, events: Events) =>
  new Hono().get('/live', c => streamTo(c as never as Context, clock, events))

const asked = (clock: Clock, events: Events) => appOf(clock, events).request('/live')
