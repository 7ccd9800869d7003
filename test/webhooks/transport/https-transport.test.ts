import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { createServer, type Server } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { describe, expect, onTestFinished, test } from 'vitest'
import { CONNECT_TIMEOUT_MS } from '../../../src/outbound/policy-dial.ts'
import { DEADLINE_MS } from '../../../src/webhooks/https-transport.ts'
import { BODY_READ_MAX, EXCERPT_LENGTH_MAX } from '../../../src/webhooks/response.ts'
import { fakeClock } from '../../support/clock.ts'
import type { How } from '../../support/http-receiver.ts'
import { BODY, openReceiver, openTransport, sendOne } from '../../support/https-post.ts'
import { waitUntil } from '../../support/wait.ts'
import { zone } from '../../support/zone.ts'

const receiptFor = async (answer: How) => (await sendOne({ answer })).sending

describe('a request', () => {
  test('arrives unchanged, and does not ask for compressed responses', async () => {
    const { receiver, sending } = await sendOne({ answer: { body: 'thanks' } })
    expect(await sending).toEqual({
      answer: { status: 200, headers: expect.any(Object), excerpt: 'thanks' },
      fault: null,
      faultCode: null,
      durationMs: 0,
    })
    const [request] = receiver.received
    expect(request).toMatchObject({ method: 'POST', path: '/hook', serverName: 'hook.example' })
    expect(request?.body.toString()).toBe(BODY)
    expect(request?.headers).toEqual({
      host: `hook.example:${receiver.port}`,
      connection: 'keep-alive',
      'content-type': 'application/json',
      'content-length': String(BODY.length),
      'x-ev': 'a b',
    })
  })

  test('goes to the path and the query of its URL', async () => {
    const receiver = await openReceiver()
    await openTransport().to(`${receiver.url}/b%20c?d=%C3%A9&e#`.replace('#', ''))
    expect(receiver.received[0]?.path).toBe('/hook/b%20c?d=%C3%A9&e')
  })

  test.each([204, 302, 404, 410, 500, 599])('with status %i has that status', async status => {
    expect(await receiptFor(status)).toMatchObject({ answer: { status }, fault: null })
  })

  test('with status 429 has its Retry-After, however many headers there are', async () => {
    const many = Array.from({ length: 60 }, (_, nth) => [`x-${nth}`, 'a'])
    const headers = { ...Object.fromEntries(many), 'retry-after': '120', 'set-cookie': 'a=b' }
    const { answer } = await receiptFor({ status: 429, headers })
    expect(answer?.headers['retry-after']).toBe('120')
    expect(Object.keys(answer?.headers ?? {})).toHaveLength(30)
  })

  test.each([301, 302, 303, 307, 308])('with status %i is not redirected', async status => {
    const other = await openReceiver()
    for (const location of ['http://169.254.169.254/', other.url, 'file:///etc/passwd']) {
      const { answer } = await receiptFor({ status, headers: { location } })
      expect(answer).toMatchObject({ status, headers: { location } })
    }
    expect(other.connections.opened).toBe(0)
  })

  const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n'
  const HINTS = 'HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n'
  const MADE = 'HTTP/1.1 201 Created\r\nContent-Length: 4\r\n\r\nmade'
  test.each([
    ['100', CONTINUE],
    ['100 with header fields and without a reason', 'HTTP/1.1 100\r\nServer: x\r\n\r\n'],
    ['100 twice', CONTINUE + CONTINUE],
    ['100 and 103', CONTINUE + HINTS],
    ['103 and 100', HINTS + CONTINUE],
    ['102', 'HTTP/1.1 102 Processing\r\n\r\n'],
  ])(
    'with an interim response that was not requested has the final one: %s',
    async (_, interim) => {
      const { answer } = await receiptFor({ raw: interim + MADE })
      expect(answer).toMatchObject({ status: 201, excerpt: 'made' })
    },
  )

  test('with 100 Continue before each response of a connection has each of them', async () => {
    const receiver = await openReceiver({ answer: { isContinued: true, body: CONTINUE } })
    const post = openTransport()
    for (let nth = 0; nth < 3; nth++) {
      // What looks like an interim response in a body belongs to the body.
      expect((await post.to(receiver.url)).answer?.excerpt).toBe(CONTINUE.trim())
    }
    expect(receiver.connections.opened).toBe(1)
  })

  test('with 100 Continue alone is none', async () => {
    const { answer, fault } = await receiptFor({ raw: CONTINUE })
    expect(answer).toBeNull()
    expect(fault).toBe('The receiver closed the connection before it answered.')
  })

  test('with 100 Early Hints before the response has that response', async () => {
    const { answer } = await receiptFor({ hints: 100, status: 201, body: 'made' })
    expect(answer).toMatchObject({ status: 201, excerpt: 'made' })
    expect(answer?.headers).not.toHaveProperty('link')
  })
})

describe('time', () => {
  test('a response after 29 s counts', async () => {
    const { receiver, clock, sending } = await sendOne({ answer: { delayMs: 29_000 } })
    await waitUntil(() => receiver.received.length === 1)
    await clock.advance(29_000)
    expect(await sending).toMatchObject({ answer: { status: 200 }, durationMs: 29_000 })
  })

  test('one after 31 s does not, and the connection is closed', async () => {
    const { receiver, clock, sending } = await sendOne({ answer: { delayMs: 31_000 } })
    await waitUntil(() => receiver.received.length === 1)
    await clock.advance(31_000)
    expect(await sending).toEqual({
      answer: null,
      fault: 'No response within 30 s.',
      faultCode: 'timeout',
      durationMs: 30_000,
    })
    await waitUntil(() => receiver.connections.open === 0)
  })

  test('a trickled body is cut after 30 s, and the response counts', async () => {
    const answered = headersCome()
    const { receiver, clock, sending } = await sendOne({ answer: { status: 202, end: 'trickle' } })
    await answered
    await clock.advance(DEADLINE_MS)
    const receipt = await sending
    expect(receipt).toMatchObject({ answer: { status: 202 }, fault: null, durationMs: 30_000 })
    expect(receipt.answer?.excerpt).toMatch(/^\.*$/)
    await waitUntil(() => receiver.connections.open === 0)
  })

  test('an unresponsive DNS server is limited to 30 s too', async () => {
    const clock = fakeClock()
    const resolver = zone({ 'hook.example': 'never' })
    const sending = openTransport({ clock, resolver }).to('https://hook.example/')
    await waitUntil(() => resolver.asked.length === 2)
    await clock.advance(DEADLINE_MS)
    expect(await sending).toMatchObject({
      fault: expect.stringMatching(/could not be looked up|within 30 s/),
      answer: null,
    })
  })

  test('no timer remains after a response', async () => {
    const { clock, sending } = await sendOne()
    await sending
    expect(clock.pending).toBe(0)
  })
})

describe('a body', () => {
  test('of a gigabyte is read to 64 KiB', async () => {
    const { receiver, sending } = await sendOne({ answer: { end: 'flood' } })
    const { answer } = await sending
    expect(answer).toMatchObject({ status: 200, excerpt: expect.stringMatching(/^x{4095}…$/) })
    expect(answer?.excerpt).toHaveLength(EXCERPT_LENGTH_MAX)
    await waitUntil(() => receiver.flooded > 0)
    // Data in the buffers of the system and of TLS was sent as well.
    expect(receiver.flooded).toBeLessThan(128 * BODY_READ_MAX)
  })

  test('that decompresses to 100 MB is not decompressed', async () => {
    // Members of a gzip stream may be concatenated (RFC 1952 §2.2).
    const member = gzipSync(Buffer.alloc(1_000_000), { level: 9 })
    const body = Buffer.concat(Array.from({ length: 100 }, () => member))
    expect(body.length).toBeGreaterThan(BODY_READ_MAX)
    const packed = await receiptFor({ headers: { 'content-encoding': 'gzip' }, body })
    expect(packed.answer?.excerpt).toBe(`(binary, more than ${BODY_READ_MAX} bytes)`)
  })

  test('that is cut by a reset does not change the response', async () => {
    const { answer, fault } = await receiptFor({ status: 200, body: 'begun', end: 'reset' })
    expect({ status: answer?.status, fault }).toEqual({ status: 200, fault: null })
  })
})

describe('there is no response', () => {
  test.each([
    ['a megabyte of headers', { headers: { a: 'x'.repeat(1_000_000) } }, /more than 16 KiB of he/],
    [
      'a closed connection',
      { raw: '' },
      /^The receiver closed the connection before it answered\.$/,
    ],
    ['a response that is not HTTP', { raw: 'hello\r\n\r\n' }, /not valid HTTP\/1\.1/],
    [
      'two Content-Length headers',
      { raw: 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab' },
      /not valid HTTP\/1\.1/,
    ],
    [
      'an incomplete header',
      { raw: 'HTTP/1.1 200 OK\r\nContent-' },
      /closed the connection|not valid HTTP/,
    ],
    [
      'a protocol switch',
      { raw: 'HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n' },
      /answered with 101/,
    ],
  ])('if there is %s', async (_, answer, says) => {
    expect(await receiptFor(answer)).toMatchObject({
      answer: null,
      fault: expect.stringMatching(says),
    })
  })

  test('if a connection is reset before it', async () => {
    const { receiver, sending } = await sendOne({ answer: { delayMs: 1_000 } })
    await waitUntil(() => receiver.received.length === 1)
    await receiver.close()
    expect(await sending).toMatchObject({
      answer: null,
      fault: expect.stringMatching(/closed the connection/),
      faultCode: 'connection_failed',
    })
  })

  test('if no server listens', async () => {
    const receiver = await openReceiver()
    await receiver.close()
    expect(await openTransport().to(receiver.url)).toMatchObject({
      answer: null,
      fault: `127.0.0.1 port ${receiver.port} refused the connection.`,
      faultCode: 'connection_failed',
    })
  })
})

describe('connections', () => {
  test('are reused, and replaced after 100 requests', async () => {
    const receiver = await openReceiver()
    const post = openTransport()
    for (let nth = 0; nth < 100; nth++) await post.to(receiver.url)
    expect(receiver.connections.opened).toBe(1)
    await post.to(receiver.url)
    expect(receiver.connections.opened).toBe(2)
    expect(receiver.received).toHaveLength(101)
  })

  test('are closed soon when idle, however long the receiver keeps them', async () => {
    const receiver = await openReceiver({
      answer: { headers: { 'keep-alive': 'timeout=600' } },
      keepsIdle: true,
    })
    // In real time, because undici uses its own timers.
    await openTransport({ idleMs: 20 }).to(receiver.url)
    expect(receiver.connections.opened).toBe(1)
    await waitUntil(() => receiver.connections.open === 0)
  })

  test('are as many as requests in flight', async () => {
    const receiver = await openReceiver()
    const post = openTransport()
    await Promise.all(Array.from({ length: 8 }, () => post.to(receiver.url)))
    expect(receiver.connections.opened).toBe(8)
  })

  test('try the next address of a name when one refuses', async () => {
    const receiver = await openReceiver()
    const resolver = zone({ 'hook.example': { A: ['127.0.0.7', '127.0.0.1'] } })
    const post = openTransport({ resolver, allowed: ['127.0.0.0/8'] })
    expect(await post.to(receiver.url)).toMatchObject({ answer: { status: 200 } })
  })

  test('try the next address after 10 s without a response', async () => {
    const clock = fakeClock()
    const receiver = await openReceiver()
    const silent = await listen('127.0.0.7', receiver.port)
    const resolver = zone({ 'hook.example': { A: ['127.0.0.7', '127.0.0.1'] } })
    const sending = openTransport({ clock, resolver, allowed: ['127.0.0.0/8'] }).to(receiver.url)
    await silent.called
    expect(receiver.connections.opened).toBe(0)
    await clock.advance(CONNECT_TIMEOUT_MS)
    expect(await sending).toMatchObject({ answer: { status: 200 }, durationMs: CONNECT_TIMEOUT_MS })
  })

  test('try no further address after the deadline', async () => {
    const clock = fakeClock()
    const last = await openReceiver()
    const ips = [7, 8, 9].map(nth => `127.0.0.${nth}`)
    const silent = await Promise.all(ips.map(ip => listen(ip, last.port)))
    const resolver = zone({ 'hook.example': { A: [...ips, '127.0.0.1'] } })
    const sending = openTransport({ clock, resolver, allowed: ['127.0.0.0/8'] }).to(last.url)
    for (const { called } of silent) {
      await called
      await clock.advance(CONNECT_TIMEOUT_MS)
    }
    expect((await sending).fault).toBe('No response within 30 s.')
    for (let turns = 0; turns < 20; turns++) await setImmediate()
    expect(last.connections.opened).toBe(0)
  })

  test('try at most four addresses of a name', async () => {
    const receiver = await openReceiver()
    const others = [3, 4, 5, 6].map(nth => `127.0.0.${nth}`)
    const resolver = zone({ 'hook.example': { A: [...others, '127.0.0.1'] } })
    const post = openTransport({ resolver, allowed: ['127.0.0.0/8'] })
    expect(await post.to(receiver.url)).toMatchObject({
      fault: `127.0.0.6 port ${receiver.port} refused the connection.`,
    })
  })

  test('are aborted when the transport is closed, and no new ones are made', async () => {
    const { receiver, clock, sending } = await sendOne({ answer: { delayMs: 1_000 } })
    const other = openTransport({ clock })
    const silent = await listen('127.0.0.1', 0)
    const waiting = other.to(`https://hook.example:${silent.port}/`)
    await Promise.all([silent.called, waitUntil(() => receiver.received.length === 1)])
    await other.close()
    const fault = 'ev was stopped before a response arrived.'
    expect(await waiting).toMatchObject({ answer: null, fault, faultCode: 'interrupted' })
    expect(await other.to(receiver.url)).toMatchObject({
      answer: null,
      fault,
      faultCode: 'interrupted',
    })
    await clock.advance(1_000)
    expect(await sending).toMatchObject({ answer: { status: 200 } })
    expect(clock.pending).toBe(0)
  })
})

/** Accepts connections and never responds. */
async function listen(ip: string, port: number) {
  const { promise: called, resolve } = Promise.withResolvers<void>()
  const server: Server = createServer(socket => {
    socket.on('error', () => {}).resume()
    resolve()
  })
  await new Promise<void>(listening => void server.listen(port, ip, listening))
  onTestFinished(() => void server.close())
  const address = server.address()
  return { called, port: typeof address === 'object' ? (address?.port ?? 0) : 0 }
}

/** Resolves once this process has read the header of a response. */
function headersCome(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const heard = () => {
    unsubscribe(CHANNEL, heard)
    resolve()
  }
  subscribe(CHANNEL, heard)
  return promise
}

const CHANNEL = 'undici:request:headers'
