import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect as connectHttp2,
  constants,
} from 'node:http2'
import { connect as connectTcp } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setImmediate, setTimeout as wait } from 'node:timers/promises'
import { connect, type TLSSocket } from 'node:tls'
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import { DAY, SECOND, systemClock } from '../../../src/base/clock.ts'
import { EvError } from '../../../src/base/error.ts'
import { SERVER_LIMITS } from '../../../src/http/server/limits.ts'
import { type Certificate, readCertificate } from '../../../src/http/server/tls/certificate.ts'
import { watchCertificate } from '../../../src/http/server/tls/renewal.ts'
import { selfSigned } from '../../../src/world/host/certificate.ts'
import { serverCertificate } from '../../support/certificate.ts'
import { fakeClock } from '../../support/clock.ts'
import {
  openHttpServer,
  parseAnswer,
  type TestHttpServerOptions,
} from '../../support/http-server.ts'
import { recordingLog } from '../../support/log.ts'
import { drainEventLoop, waitUntil } from '../../support/wait.ts'

const NAME = 'ev.example'

const openTls = (options: TestHttpServerOptions = {}) =>
  openHttpServer({ certificate: serverCertificate(), ...options })

const sessions: ClientHttp2Session[] = []
afterEach(() => {
  for (const session of sessions.splice(0)) session.destroy()
})

async function session(port: number): Promise<ClientHttp2Session> {
  const client = connectHttp2(`https://127.0.0.1:${port}`, { rejectUnauthorized: false })
  client.on('error', () => {})
  sessions.push(client)
  await once(client, 'connect')
  return client
}

type Headers = Record<string, string>

/** One request over HTTP/2, and its answer. */
async function ask(client: ClientHttp2Session, headers: Headers, body?: string) {
  const stream = client.request(
    { ':authority': NAME, ...headers },
    { endStream: body === undefined },
  )
  stream.end(body)
  return answer(stream)
}

async function answer(stream: ClientHttp2Stream) {
  const [headers] = (await once(stream, 'response')) as [Record<string, unknown>]
  return { status: headers[':status'], headers, json: JSON.parse(await text(stream)) }
}

describe('TLS', () => {
  test.each(['TLSv1', 'TLSv1.1'] as const)('%s is refused', async version => {
    const { port } = await openTls()
    const options = { minVersion: version, maxVersion: version, ciphers: 'ALL:@SECLEVEL=0' }
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, ...options })
    const [error] = await once(socket, 'error')
    expect(String(error.code)).toMatch(/ALERT_PROTOCOL_VERSION|UNSUPPORTED_PROTOCOL|NO_PROTOCOLS/)
  })

  test.each(['TLSv1.2', 'TLSv1.3'] as const)('%s is spoken', async version => {
    const { port } = await openTls()
    const options = { minVersion: version, maxVersion: version }
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, ...options })
    onTestFinished(() => void socket.destroy())
    await once(socket, 'secureConnect')
    expect(socket.getProtocol()).toBe(version)
  })

  test('HTTP/1.1 has the same answers and the same limits as without', async () => {
    const server = await openTls()
    const ok = 'GET /ok HTTP/1.1\r\nHost: ev.example\r\nConnection: close\r\n\r\n'
    expect(parseAnswer(await server.send(ok))).toMatchObject({ status: 200, json: { ok: true } })
    expect(parseAnswer(await server.send('BREW / HTTP/1.1\r\n\r\n'))).toMatchObject({ status: 400 })
    const large = `GET /ok HTTP/1.1\r\nHost: a\r\nA: ${'x'.repeat(20_000)}\r\n\r\n`
    expect(parseAnswer(await server.send(large))).toMatchObject({ status: 431 })
  })

  test('HTTP/1.1 has the same time for headers and for a body as without', async () => {
    const [first, second] = [
      await openTls({ limits: { headersMs: 50, checkMs: 10 } }),
      await openTls({ limits: { bodyMs: 50 } }),
    ]
    expect(parseAnswer(await first.send('GET /ok HTTP/1.1\r\n'))).toMatchObject({ status: 408 })
    const body = 'POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc'
    expect(parseAnswer(await second.send(body))).toMatchObject({ status: 408 })
  })

  test('a client that only says hello is left', async () => {
    const server = await openTls({ limits: { tlsHandshakeMs: 50 } })
    const socket = connectTcp(server.port, '127.0.0.1')
    onTestFinished(() => void socket.destroy())
    socket.on('error', () => {})
    socket.resume()
    const [hadError] = await once(socket, 'close')
    expect([hadError, socket.bytesRead]).toEqual([false, 0])
  })

  test('a new certificate is for new connections; the old ones stay', async () => {
    const fresh = { ...selfSigned('new.example'), expiresAt: systemClock.now() + DAY }
    const server = await openTls()
    const before = (await server.open()) as TLSSocket
    server.renew(fresh)
    const after = (await server.open()) as TLSSocket
    expect(before.getPeerCertificate().subject.CN).toBe(NAME)
    expect(after.getPeerCertificate().subject.CN).toBe('new.example')
    before.write('GET /ok HTTP/1.1\r\nHost: ev.example\r\nConnection: close\r\n\r\n')
    expect(parseAnswer(await text(before))).toMatchObject({ status: 200 })
  })
})

describe('HTTP/2', () => {
  test('has the same answers', async () => {
    const server = await openTls()
    const client = await session(server.port)
    expect(await ask(client, { ':path': '/ok' })).toMatchObject({ status: 200, json: { ok: true } })
    const post = { ':path': '/echo', ':method': 'POST' }
    expect((await ask(client, post, 'abc')).json).toEqual({ bytes: 3 })
    expect(await ask(client, { ':path': '/none' })).toMatchObject({ status: 404 })
  })

  test('answers HEAD, whose stream can be written from its start to its end by nobody', async () => {
    const server = await openTls()
    const stream = (await session(server.port)).request({ ':path': '/ok', ':method': 'HEAD' })
    const [headers] = await once(stream, 'response', { signal: AbortSignal.timeout(5_000) })
    expect(headers).toMatchObject({ ':status': 200 })
    expect(await text(stream)).toBe('')
  })

  test.each([
    ['an expectation', { ':path': '/ok', expect: 'x' }, 417],
    ['two slashes', { ':path': '//ok' }, 400],
    ['a Host in disguise', { ':path': '/ok', ':authority': '0x7f.1' }, 400],
    ['another scheme', { ':path': '/ok', ':scheme': 'ftp' }, 400],
  ])('%s is refused as JSON', async (_, headers, status) => {
    const server = await openTls()
    const client = await session(server.port)
    const refused = await ask(client, headers as unknown as Headers)
    expect(refused).toMatchObject({ status, json: { success: false } })
    expect(refused.headers).toMatchObject({ 'x-ratelimit-limit': '100' })
    expect(server.asked).toEqual([])
  })

  test('CONNECT is refused as JSON', async () => {
    const server = await openTls()
    const client = await session(server.port)
    const stream = client.request({ ':method': 'CONNECT', ':authority': 'a.example:25' })
    expect(await answer(stream)).toMatchObject({ status: 405, json: { success: false } })
  })

  test('a body that does not come in time is told so, and the connection stays', async () => {
    const clock = fakeClock()
    const server = await openTls({ clock })
    const client = await session(server.port)
    const stream = client.request({ ':authority': NAME, ':path': '/echo', ':method': 'POST' })
    stream.write('abc')
    await waitUntil(() => server.asked.length === 1)
    await clock.advance(SERVER_LIMITS.bodyMs)
    expect(await answer(stream)).toMatchObject({ status: 408, json: { code: 'request_timeout' } })
    expect(await ask(client, { ':path': '/ok' })).toMatchObject({ status: 200 })
  })

  test('an answer that nobody reads is given up', async () => {
    let isCancelled = false
    const server = await openTls({
      limits: { stallMs: 50 },
      paths: app =>
        app.get('/long', () => {
          const pull = (to: ReadableStreamDefaultController) => to.enqueue(new Uint8Array(100_000))
          const cancel = () => {
            isCancelled = true
          }
          return new Response(new ReadableStream({ pull, cancel }))
        }),
    })
    const client = await session(server.port)
    const stream = client.request({ ':authority': NAME, ':path': '/long' })
    stream.on('error', () => {})
    stream.pause()
    await once(stream, 'close')
    expect(isCancelled).toBe(true)
  })

  test('an answer that takes its time is waited for', async () => {
    const clock = fakeClock()
    const server = await openTls({
      clock,
      limits: { stallMs: 10 },
      // Silence is in Node's time, the idle connection in that of the server.
      paths: app =>
        app.get('/wait', async c => {
          await clock.advance(10 * SERVER_LIMITS.keepAliveMs)
          return wait(100, c.json({ ok: true }))
        }),
    })
    const client = await session(server.port)
    expect(await ask(client, { ':path': '/wait' })).toMatchObject({ status: 200 })
  })

  test('a connection without requests ends, however it keeps itself busy', async () => {
    const clock = fakeClock()
    const server = await openTls({ clock })
    const client = await session(server.port)
    const closed = once(client, 'close')
    const ping = () => new Promise<unknown>(resolve => void client.ping(resolve))
    for (let passed = 0; passed < SERVER_LIMITS.keepAliveMs; passed += SECOND) {
      expect(await ping()).toBe(null)
      await clock.advance(SECOND)
    }
    await closed
  })

  test.each(['ping', 'settings'] as const)('a flood of %s ends the connection', async flood => {
    const server = await openTls({ limits: { controlFramesPerMinute: 50 } })
    const client = await session(server.port)
    const closed = once(client, 'close')
    while (!client.destroyed) {
      if (flood === 'ping') client.ping(() => {})
      else client.settings({ initialWindowSize: 65_535 })
      await setImmediate()
    }
    await closed
  })

  test('streams that are opened and taken back at once, again and again, end the connection', async () => {
    const server = await openTls({
      limits: { resetsBurst: 20, resetsPerSecond: 1 },
      paths: app => app.get('/wait', async c => wait(100, c.json({}))),
    })
    const client = await session(server.port)
    const closed = new Promise(resolve => client.once('close', resolve))
    for (let i = 0; i < 100 && !client.destroyed; i++) {
      const streams = Array.from({ length: 5 }, () => {
        const stream = client.request({ ':authority': NAME, ':path': '/wait' })
        return stream.on('error', () => {})
      })
      await drainEventLoop()
      for (const stream of streams) stream.close(constants.NGHTTP2_CANCEL)
      await drainEventLoop()
    }
    await closed
    expect(server.asked.length).toBeLessThan(100)
  })

  test('too many requests at once wait or are refused by the protocol', async () => {
    const gate = Promise.withResolvers<void>()
    let atOnce = 0
    let most = 0
    const server = await openTls({
      limits: { streamsMax: 5 },
      paths: app =>
        app.get('/wait', async c => {
          most = Math.max(most, ++atOnce)
          await gate.promise
          atOnce--
          return c.json({})
        }),
    })
    const client = await session(server.port)
    await once(client, 'remoteSettings')
    const all = Array.from({ length: 20 }, () => ask(client, { ':path': '/wait' }))
    await waitUntil(() => atOnce === 5)
    await drainEventLoop()
    gate.resolve()
    await Promise.all(all)
    expect(most).toBe(5)
  })

  test('more headers than are allowed reach nobody', async () => {
    const server = await openTls()
    for (const headers of [
      Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`a${i}`, 'b'])),
      { a: 'x'.repeat(20_000) },
    ]) {
      const client = await session(server.port)
      const stream = client.request({ ':authority': NAME, ':path': '/ok', ...headers })
      const end = await Promise.race([
        once(stream, 'response').then(([got]) => got[':status'] as number),
        once(stream, 'close').then(() => 'closed'),
      ]).catch(() => 'error')
      expect([431, 'error', 'closed']).toContain(end)
    }
    expect(server.asked).toEqual([])
  })

  test('a connection ends, gracefully, after as many requests as it may bring', async () => {
    const server = await openTls({ limits: { requestsPerConnection: 3 } })
    const client = await session(server.port)
    const told = once(client, 'goaway')
    for (let i = 0; i < 3; i++) {
      expect(await ask(client, { ':path': '/ok' })).toMatchObject({ status: 200 })
    }
    const [code] = await told
    expect(code).toBe(constants.NGHTTP2_NO_ERROR)
  })
})

describe('the files of a certificate', () => {
  function files(parts: { cert?: string; key?: string } = {}) {
    const folder = mkdtempSync(join(tmpdir(), 'ev-cert-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const whole = { ...serverCertificate(), ...parts }
    const named = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') }
    writeFileSync(named.cert, whole.cert)
    writeFileSync(named.key, whole.key)
    return named
  }
  const fault = (run: () => unknown) => {
    try {
      run()
    } catch (error) {
      if (error instanceof EvError) return `${error.code}: ${error.message}`
    }
    return 'none'
  }

  test('that are there and belong together are taken', () => {
    const { expiresAt } = readCertificate(files())
    expect(expiresAt).toBeGreaterThan(systemClock.now())
  })

  test.each([
    ['no certificate', { cert: 'hello' }, /cert\.pem holds no certificate in PEM form.*BEGIN/],
    ['no key', { key: 'hello' }, /key\.pem holds no private key that can be read.*password/],
    ['the key of another', { key: selfSigned(NAME).key }, /is not that of the certificate/],
  ])('that hold %s are refused with a sentence', (_, parts, says) => {
    const refused = fault(() => readCertificate(files(parts)))
    expect(refused).toMatch(says)
    expect(refused).toMatch(/^bad_config: /)
  })

  test('that are not there are named', () => {
    const missing = { cert: '/nowhere/cert.pem', key: '/nowhere/key.pem' }
    expect(fault(() => readCertificate(missing))).toMatch(
      /certificate \/nowhere\/cert\.pem cannot be/,
    )
  })

  test('are read again; what is bad is said once and changes nothing', async () => {
    const clock = fakeClock()
    const named = files()
    const { log, lines } = recordingLog()
    const renewed: Certificate[] = []
    const first = readCertificate(named)
    const renewal = watchCertificate(named, first, { clock, log }, one => void renewed.push(one))
    await clock.advance(20_000)
    expect([lines, renewed]).toEqual([[], []])
    const fresh = selfSigned('new.example')
    writeFileSync(named.cert, fresh.cert)
    await clock.advance(20_000)
    expect(lines).toHaveLength(1)
    expect(lines[0]?.message).toMatch(
      /^the certificate stays as it was\. The key .* is not that of/,
    )
    writeFileSync(named.key, fresh.key)
    await clock.advance(5_000)
    expect(renewed.map(({ cert }) => cert)).toEqual([fresh.cert])
    expect(lines[1]?.message).toBe('the certificate was read again')
    renewal.stop()
    expect(clock.pending).toBe(0)
  })

  test('that have expired, or soon will have, are warned of', () => {
    const clock = fakeClock()
    for (const [leftMs, says] of [
      [-1_000, 'has expired'],
      [3 * 86_400_000, 'expires soon'],
    ] as const) {
      const named = files(selfSigned(NAME, clock.now() + leftMs))
      const { log, lines } = recordingLog()
      watchCertificate(named, readCertificate(named), { clock, log }, () => {}).stop()
      expect(lines).toMatchObject([{ message: expect.stringContaining(says) }])
    }
  })
})
