import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect as connectTcp } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { connect, type TLSSocket } from 'node:tls'
import { describe, expect, onTestFinished, test } from 'vitest'
import {
  type Certificate,
  readCertificate,
  watchCertificate,
} from '../../../src/api/server/certificate.ts'
import { DAY, systemClock } from '../../../src/platform/clock.ts'
import { EvError } from '../../../src/platform/error.ts'
import { selfSigned } from '../../../src/simulator/smtp-host/host.ts'
import { serverCertificate } from '../../support/certificate.ts'
import { fakeClock } from '../../support/clock.ts'
import {
  openHttpServer,
  parseAnswer,
  type TestHttpServerOptions,
} from '../../support/http-server.ts'
import { recordingLog } from '../../support/log.ts'

const NAME = 'ev.example'

const openTls = (options: TestHttpServerOptions = {}) =>
  openHttpServer({ certificate: serverCertificate(), ...options })

describe('TLS', () => {
  test.each(['TLSv1', 'TLSv1.1'] as const)('%s is refused', async version => {
    const { port } = await openTls()
    const options = { minVersion: version, maxVersion: version, ciphers: 'ALL:@SECLEVEL=0' }
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, ...options })
    const [error] = await once(socket, 'error')
    expect(String(error.code)).toMatch(/ALERT_PROTOCOL_VERSION|UNSUPPORTED_PROTOCOL|NO_PROTOCOLS/)
  })

  test.each(['TLSv1.2', 'TLSv1.3'] as const)('%s is supported', async version => {
    const { port } = await openTls()
    const options = { minVersion: version, maxVersion: version }
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, ...options })
    onTestFinished(() => void socket.destroy())
    await once(socket, 'secureConnect')
    expect(socket.getProtocol()).toBe(version)
  })

  test.each(['AES128-GCM-SHA256', 'ECDHE-RSA-AES128-SHA256', 'ECDHE-RSA-AES256-SHA'])(
    '%s, without forward secrecy or authenticated encryption, is refused',
    async ciphers => {
      const { port } = await openTls()
      const options = { maxVersion: 'TLSv1.2', ciphers: `${ciphers}:@SECLEVEL=0` } as const
      const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, ...options })
      const [error] = await once(socket, 'error')
      expect(error.code).toBe('ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE')
    },
  )

  test('negotiates HTTP/1.1 with a client that prefers HTTP/2', async () => {
    const { port } = await openTls()
    const offer = { ALPNProtocols: ['h2', 'http/1.1'], rejectUnauthorized: false }
    const socket = connect({ port, host: '127.0.0.1', ...offer })
    onTestFinished(() => void socket.destroy())
    await once(socket, 'secureConnect')
    expect(socket.alpnProtocol).toBe('http/1.1')
  })

  test('has the same responses and limits as plain HTTP', async () => {
    const server = await openTls()
    const ok = 'GET /ok HTTP/1.1\r\nHost: ev.example\r\nConnection: close\r\n\r\n'
    expect(parseAnswer(await server.send(ok))).toMatchObject({ status: 200, json: { ok: true } })
    expect(parseAnswer(await server.send('BREW / HTTP/1.1\r\n\r\n'))).toMatchObject({ status: 400 })
    const large = `GET /ok HTTP/1.1\r\nHost: a\r\nA: ${'x'.repeat(20_000)}\r\n\r\n`
    expect(parseAnswer(await server.send(large))).toMatchObject({ status: 431 })
  })

  test('has the same timeouts for headers and bodies as plain HTTP', async () => {
    const [first, second] = [
      await openTls({ limits: { headersMs: 50, checkMs: 10 } }),
      await openTls({ limits: { bodyMs: 50 } }),
    ]
    expect(parseAnswer(await first.send('GET /ok HTTP/1.1\r\n'))).toMatchObject({ status: 408 })
    const body = 'POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc'
    expect(parseAnswer(await second.send(body))).toMatchObject({ status: 408 })
  })

  test('closes a connection that stalls in the handshake', async () => {
    const server = await openTls({ limits: { tlsHandshakeMs: 50 } })
    const socket = connectTcp(server.port, '127.0.0.1')
    onTestFinished(() => void socket.destroy())
    socket.on('error', () => {})
    socket.resume()
    const [hadError] = await once(socket, 'close')
    expect([hadError, socket.bytesRead]).toEqual([false, 0])
  })

  test('uses a new certificate for new connections and keeps existing ones', async () => {
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

describe('the files of a certificate', () => {
  function files(deps: { cert?: string; key?: string } = {}) {
    const folder = mkdtempSync(join(tmpdir(), 'ev-cert-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    const whole = { ...serverCertificate(), ...deps }
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

  test('are accepted if they exist and match', () => {
    const { expiresAt } = readCertificate(files())
    expect(expiresAt).toBeGreaterThan(systemClock.now())
  })

  test.each([
    ['no certificate', { cert: 'hello' }, /cert\.pem contains no certificate in PEM format.*BEGIN/],
    ['no key', { key: 'hello' }, /key\.pem contains no readable private key.*password/],
    [
      'the key of another certificate',
      { key: selfSigned(NAME).key },
      /does not match the certificate/,
    ],
  ])('are refused with an explanation: %s', (_, deps, says) => {
    const refused = fault(() => readCertificate(files(deps)))
    expect(refused).toMatch(says)
    expect(refused).toMatch(/^bad_config: /)
  })

  test('are named in the error if they are missing', () => {
    const missing = { cert: '/nowhere/cert.pem', key: '/nowhere/key.pem' }
    expect(fault(() => readCertificate(missing))).toMatch(
      /certificate \/nowhere\/cert\.pem cannot be/,
    )
  })

  test('are reloaded; an invalid one is logged once and changes nothing', async () => {
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
      /^certificate not reloaded, the current one stays in use: The key .* does not match/,
    )
    writeFileSync(named.key, fresh.key)
    await clock.advance(5_000)
    expect(renewed.map(({ cert }) => cert)).toEqual([fresh.cert])
    expect(lines[1]?.message).toBe('certificate reloaded')
    renewal.stop()
    expect(clock.pending).toBe(0)
  })

  test('cause a warning if the certificate has expired or expires soon', () => {
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
