import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { createIpPolicy } from '../../src/engine/smtp/dial-policy.ts'
import {
  createDownload,
  type DownloadRequest,
  getFileName,
  REDIRECTS_MAX,
  SILENCE_MS,
} from '../../src/outbound/download.ts'
import { SECOND } from '../../src/platform/clock.ts'
import { testAuthority } from '../support/certificate.ts'
import { type FakeClock, fakeClock } from '../support/clock.ts'
import type { Received, ReceiverOptions, ScriptedReply } from '../support/http-receiver.ts'
import { openReceiver } from '../support/https-post.ts'
import { waitUntil } from '../support/wait.ts'
import { type Zone, zone } from '../support/zone.ts'

const LIST = 'email\nann@a.test\nbob@a.test\n'
const file = (body: string | Buffer, headers: Record<string, string> = {}): ScriptedReply => ({
  body,
  headers: { 'content-length': String(Buffer.byteLength(body)), ...headers },
})

type Options = Partial<Omit<DownloadRequest, 'url'>> & {
  readonly allowed?: readonly string[]
  readonly resolver?: Zone
  readonly clock?: FakeClock
}

/** Downloads a URL as text. */
function get(url: string, { allowed = ['127.0.0.1'], ...options }: Options = {}): Promise<string> {
  const { clock = fakeClock(), resolver = NAMES(), ...request } = options
  const download = createDownload({
    clock,
    resolver,
    mayDial: createIpPolicy(allowed),
    ca: testAuthority().cert,
  })
  return download({ url, bytesMax: 1_000, totalMs: null, ...request }, async bytes =>
    Buffer.concat(await bytes.toArray()).toString(),
  )
}

const NAMES = () =>
  zone({
    'hook.example': { A: ['127.0.0.1'] },
    'other.example': { A: ['127.0.0.1'] },
    'inside.example': { A: ['10.0.0.7'] },
    'mixed.example': { A: ['127.0.0.1', '10.0.0.7'] },
    'six.example': { A: ['127.0.0.1'], AAAA: ['fd00::1'] },
  })

/** Starts a receiver and returns a URL of it. */
async function serve(answer: ReceiverOptions['answer'], options: ReceiverOptions = {}) {
  const receiver = await openReceiver({ ...(answer === undefined ? {} : { answer }), ...options })
  const { port } = receiver
  return {
    receiver,
    port,
    url: `https://hook.example:${port}/lists/march.csv?X-Amz-Signature=s3cret`,
  }
}

const failure = async (download: Promise<unknown>) =>
  (await download.then(
    () => null,
    error => error,
  )) as { kind: string; message: string; stack: string } | null

describe('a file', () => {
  test.each<[string, ScriptedReply]>([
    ['with its length', file(LIST)],
    ['in chunks', { body: LIST }],
    [
      'that the server compressed although it was not asked to',
      file(LIST, { 'content-encoding': 'gzip' }),
    ],
  ])('%s arrives unchanged', async (_, answer) => {
    const { url, receiver } = await serve(answer)
    expect(await get(url)).toBe(LIST)
    expect(receiver.received).toMatchObject([
      {
        method: 'GET',
        path: '/lists/march.csv?X-Amz-Signature=s3cret',
        headers: { 'accept-encoding': 'identity' },
      },
    ])
  })

  test('arrives over plain HTTP from loopback, if loopback is allowed', async () => {
    const { port } = await serve(file(LIST), { tls: 'none' })
    expect(await get(`http://127.0.0.1:${port}/`)).toBe(LIST)
    const fault = await failure(get(`http://127.0.0.1:${port}/`, { allowed: [] }))
    expect(fault).toMatchObject({ kind: 'invalid_url' })
  })

  test('may be as large as the limit', async () => {
    const { url } = await serve(file('x'.repeat(1_000)))
    expect(await get(url)).toHaveLength(1_000)
  })

  test('is followed through redirects, each on its own connection', async () => {
    const { url, port, receiver } = await serve(({ path }) =>
      path.startsWith('/lists')
        ? { status: 302, headers: { location: `https://other.example:${port2}/a#top` } }
        : { status: 307, headers: { location: '/lists/b' } },
    )
    const other = await openReceiver({
      name: 'other.example',
      answer: ({ path }) =>
        path === '/a' ? { status: 301, headers: { location: 'b?c=d' } } : file(LIST),
    })
    const port2 = other.port
    expect(await get(url)).toBe(LIST)
    expect(other.received.map(({ path }) => path)).toEqual(['/a', '/b?c=d'])
    expect([port, receiver.received.length]).toEqual([port, 1])
  })
})

describe('no connection is made', () => {
  test.each([
    ['file:///etc/passwd', 'invalid_url', /begin with https/],
    ['ftp://hook.example/list.csv', 'invalid_url', /begin with https/],
    ['data:text/csv,a@a.test', 'invalid_url', /begin with https/],
    ['http://8.8.8.8:8081/', 'invalid_url', /begin with https/],
    ['http://hook.example:8081/', 'invalid_url', /begin with https/],
    ['s3://lists/a.csv', 'invalid_url', /begin with https/],
    ['list.csv', 'invalid_url', /not a URL/],
    ['https://ann:s3cret@hook.example/', 'invalid_url', /password/],
    ['https://hook.example/#s3cret', 'invalid_url', /fragment/],
    ['https://hook.example:25/', 'invalid_url', /Port 25/],
    ['https://hook.example/a\r\nHost: b', 'invalid_url', /control/],
    ['https://10.0.0.7/', 'not_public', /not public/],
    ['https://169.254.169.254/latest/meta-data/', 'not_public', /not public/],
    ['https://2130706434/', 'not_public', /not public/],
    ['https://0x7f.0.0.2/', 'not_public', /not public/],
    ['https://[::1]/', 'not_public', /not public/],
    ['https://[fd00::1]/', 'not_public', /not public/],
    ['https://[::ffff:10.0.0.7]/', 'not_public', /not public/],
    ['https://[::ffff:a00:7]/', 'not_public', /not public/],
    ['https://[64:ff9b::a00:7]/', 'not_public', /not public/],
    ['https://inside.example/', 'not_public', /has an address that is not public/],
    ['https://mixed.example/', 'not_public', /has an address that is not public/],
    ['https://six.example/', 'not_public', /has an address that is not public/],
    ['https://missing.example/', 'unreachable', /no address in the DNS/],
  ])('for %s', async (url, kind, message) => {
    const fault = await failure(get(url))
    expect(fault).toMatchObject({ kind, message: expect.stringMatching(message) })
    expect(fault?.message).not.toContain('s3cret')
  })

  test.each([
    ['https://10.0.0.7/', 'not_public', /not public/],
    ['https://[::ffff:10.0.0.7]/', 'not_public', /not public/],
    ['https://inside.example/', 'not_public', /not public/],
    ['http://hook.example/', 'invalid_url', /redirects to a URL that is not allowed/],
    ['file:///etc/passwd', 'invalid_url', /redirects to a URL that is not allowed/],
    ['https://ann:s3cret@hook.example/', 'invalid_url', /password/],
    ['https://[', 'invalid_url', /It is not a URL/],
  ])('for a redirect to %s', async (location, kind, message) => {
    const { url } = await serve({ status: 302, headers: { location } })
    const fault = await failure(get(url))
    expect(fault).toMatchObject({ kind, message: expect.stringMatching(message) })
    expect(fault?.message).not.toContain('s3cret')
  })

  test('for a name that has another address at the second redirect', async () => {
    const records = { A: ['127.0.0.1'] }
    const resolver = zone({ 'hook.example': records })
    const { url, receiver } = await serve(() => {
      records.A = ['10.0.0.7']
      return { status: 302, headers: { location: '/next' } }
    })
    expect(await failure(get(url, { resolver }))).toMatchObject({ kind: 'not_public' })
    expect(receiver.received).toHaveLength(1)
  })
})

test('the checked address is dialed: there is no second lookup', async () => {
  let lookups = 0
  const resolver = NAMES()
  const counting = {
    resolve: (...args: Parameters<Zone['resolve']>) => {
      lookups++
      return resolver.resolve(...args)
    },
  } as Zone
  const { url } = await serve(file(LIST))
  await get(url, { resolver: counting })
  expect(lookups).toBe(2) // A and AAAA
})

describe('a response is refused', () => {
  test.each<[string, ScriptedReply, string, RegExp]>([
    ['404', { status: 404 }, 'status', /answered with 404\. Check the URL\./],
    ['500', { status: 500 }, 'status', /answered with 500\. Try again later\./],
    ['204', { status: 204 }, 'status', /answered with 204\. Use a URL that returns the file/],
    ['206', { status: 206, body: LIST }, 'status', /answered with 206/],
    ['304', { status: 304 }, 'status', /answered with 304/],
    ['302 without a location', { status: 302 }, 'status', /answered with 302/],
    ['401', { status: 401 }, 'denied', /401\. Use a URL that needs no sign-in/],
    ['403', { status: 403, body: '<Code>x</Code>' }, 'denied', /403\. Use a URL that needs/],
    ['a larger length', file('x'.repeat(1_001)), 'too_large', /more than .* the limit for a list/],
    ['more chunks', { body: 'x'.repeat(1_001) }, 'too_large', /more than/],
    ['an endless body', { end: 'flood' }, 'too_large', /more than/],
    [
      'endless early hints',
      { pour: 'HTTP/1.1 103 Early Hints\r\n\r\n' },
      'unreachable',
      /too much data/,
    ],
    ['Brotli', file(LIST, { 'content-encoding': 'br' }), 'unreachable', /compressed .* not read/],
    [
      'no length',
      { raw: `HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n${LIST}` },
      'unreachable',
      /neither Content-Length nor chunks/,
    ],
    [
      'a body that is shorter than its length',
      { raw: `HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n${LIST}` },
      'unreachable',
      /closed before the whole file had arrived/,
    ],
    [
      'chunks without their end',
      { raw: `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nemail\r\n` },
      'unreachable',
      /closed before the whole file had arrived/,
    ],
    // The headers may be lost.
    ['a reset', { body: LIST, end: 'reset' }, 'unreachable', /closed/],
    ['no HTTP', { raw: 'SSH-2.0-OpenSSH_9.9\r\n' }, 'unreachable', /not valid HTTP/],
    ['nothing', { raw: '' }, 'unreachable', /closed the connection before it answered/],
  ])('with %s', async (_, answer, kind, message) => {
    const { url } = await serve(answer)
    const fault = await failure(get(url))
    expect(fault).toMatchObject({ kind, message: expect.stringMatching(message) })
    expect(`${fault?.message} ${fault?.stack}`).not.toMatch(/s3cret|march/)
  })

  test('with more redirects than allowed', async () => {
    const { url, receiver } = await serve(({ path }: Received) => ({
      status: 302,
      headers: { location: `${path}x` },
    }))
    const fault = await failure(get(url))
    expect(fault).toMatchObject({ kind: 'unreachable', message: /redirects more than 5 times/ })
    expect(receiver.received).toHaveLength(REDIRECTS_MAX + 1)
  })

  test('with an invalid certificate', async () => {
    const { url, receiver } = await serve(file(LIST), { certificate: 'self-signed' })
    expect(await failure(get(url))).toMatchObject({ kind: 'unreachable', message: /self-signed/ })
    expect(receiver.received).toEqual([])
  })
})

describe('a slow server', () => {
  test('is given up if its response does not begin', async () => {
    const clock = fakeClock()
    const { url, receiver } = await serve({ delayMs: SILENCE_MS + 1 }, { clock })
    const failed = failure(get(url, { clock }))
    await waitUntil(() => receiver.received.length === 1)
    await clock.advance(SILENCE_MS)
    expect(await failed).toMatchObject({ kind: 'unreachable', message: /No data arrived for 30 s/ })
  })

  test('may take any time while data arrives, unless the whole time is limited', async () => {
    const clock = fakeClock()
    const { url, receiver } = await serve({ end: 'trickle' }, { clock })
    const failed = failure(get(url, { clock, totalMs: 90 * SECOND }))
    await waitUntil(() => receiver.received.length === 1)
    let isDone = false
    void failed.then(() => {
      isDone = true
    })
    for (let second = 0; second < 200 && !isDone; second++) {
      await clock.advance(SECOND)
      await new Promise(resolve => setImmediate(resolve))
    }
    expect(await failed).toMatchObject({
      kind: 'unreachable',
      message: /The download took longer than 90 s/,
    })
  })
})

test('a download ends with the signal of its caller', async () => {
  const stop = new AbortController()
  const { url, receiver } = await serve({ end: 'trickle' }, { clock: fakeClock() })
  const failed = failure(get(url, { signal: stop.signal }))
  await waitUntil(() => receiver.received.length === 1)
  stop.abort()
  expect(await failed).not.toBeNull()
  await waitUntil(() => receiver.connections.open === 0)
})

test('the connection is closed when the caller fails', async () => {
  const { url, receiver } = await serve({ end: 'flood' })
  const download = createDownload({
    clock: fakeClock(),
    resolver: NAMES(),
    mayDial: createIpPolicy(['127.0.0.1']),
    ca: testAuthority().cert,
  })
  const error = new Error('the disk is full')
  const request = { url, bytesMax: Number.POSITIVE_INFINITY, totalMs: null }
  await expect(download(request, () => Promise.reject(error))).rejects.toBe(error)
  await waitUntil(() => receiver.connections.open === 0)
})

test('gzip is not expanded: what is stored is what the limit counts', async () => {
  const bomb = gzipSync(Buffer.alloc(500_000))
  const { url } = await serve(file(bomb, { 'content-encoding': 'gzip' }))
  expect((await get(url)).length).toBeLessThan(1_000)
})

test.each([
  ['https://a.example/lists/march.csv?token=s3cret', 'march.csv'],
  ['https://a.example/M%C3%A4rz%2F1.csv', 'März_1.csv'],
  ['https://a.example/%E0%A4%A.csv', '%E0%A4%A.csv'],
  ['https://a.example/', ''],
  ['https://a.example', ''],
  ['s3://lists/2026/March 1?.csv', 'March 1?.csv'],
  ['s3://lists', ''],
])('the file name of %s is %j', (url, name) => {
  expect(getFileName(url)).toBe(name)
})
