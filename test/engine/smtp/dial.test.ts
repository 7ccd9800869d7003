import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { duplexPair } from 'node:stream'
import { TLSSocket } from 'node:tls'
import { afterEach, describe, expect, test } from 'vitest'
import type { AddressFamilies } from '../../../src/engine/dns/route.ts'
import { type DialOptions, getDialFamilies, tcpDial } from '../../../src/engine/smtp/dial.ts'
import { selfSigned } from '../../../src/simulator/smtp-host/host.ts'

const DIRECT: DialOptions = { sourceAddress: null, proxy: null }
const never = new AbortController().signal
const open: Server[] = []
const sockets = new Set<Socket>()

/** Starts a server on loopback and returns its port. */
async function listen(serve: (socket: Socket) => void, host = '127.0.0.1'): Promise<number> {
  const server = createServer(socket => {
    sockets.add(socket)
    socket.on('error', () => {})
    serve(socket)
  })
  open.push(server)
  server.listen(0, host)
  await once(server, 'listening')
  const address = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}

afterEach(async () => {
  for (const socket of sockets) socket.destroy()
  sockets.clear()
  for (const server of open.splice(0)) {
    server.close()
    await once(server, 'close')
  }
})

const target = (port: number) => ({ ip: '127.0.0.1', port, host: 'mx.invalid' })

describe('dialing', () => {
  test('connects to the address instead of the name', async () => {
    const port = await listen(socket => socket.end('220 hello\r\n'))
    const socket = await tcpDial(DIRECT).connect(target(port), never)
    expect(String((await once(socket, 'data'))[0])).toBe('220 hello\r\n')
    socket.destroy()
  })

  test('uses the source address', async () => {
    const seen = Promise.withResolvers<string | undefined>()
    const port = await listen(socket => seen.resolve(socket.remoteAddress))
    const dial = tcpDial({ ...DIRECT, sourceAddress: '127.0.0.9' })
    const socket = await dial.connect(target(port), never)
    expect(await seen.promise).toBe('127.0.0.9')
    socket.destroy()
  })

  test('fails with a source address of the other family', async () => {
    const port = await listen(() => {})
    const dial = tcpDial({ ...DIRECT, sourceAddress: '::1' })
    await expect(dial.connect(target(port), never)).rejects.toThrow()
  })

  test('rejects with the system error if the connection is refused', async () => {
    const port = await listen(() => {})
    const [server] = open.splice(0)
    server?.close()
    await expect(tcpDial(DIRECT).connect(target(port), never)).rejects.toMatchObject({
      code: 'ECONNREFUSED',
    })
  })

  test('does not dial after an abort', async () => {
    let connections = 0
    const port = await listen(() => connections++)
    const dial = tcpDial(DIRECT)
    await expect(dial.connect(target(port), AbortSignal.abort())).rejects.toThrow('given up')
    expect(connections).toBe(0)
  })

  test('an abort cancels a dial in flight', async () => {
    const port = await listen(() => {})
    const limit = new AbortController()
    const connecting = tcpDial(DIRECT).connect(target(port), limit.signal)
    limit.abort()
    await expect(connecting).rejects.toThrow('given up')
  })

  test('an abort after the dial does not affect the connection', async () => {
    const port = await listen(() => {})
    const limit = new AbortController()
    const socket = await tcpDial(DIRECT).connect(target(port), limit.signal)
    limit.abort()
    expect(socket.destroyed).toBe(false)
    socket.destroy()
  })
})

describe('a SOCKS5 proxy', () => {
  type Ask = { methods: number[]; login: string | null; command: Buffer }

  /** A minimal proxy (RFC 1928, RFC 1929) that does not connect and plays the target itself. */
  async function proxy(reply = 0, method = 0) {
    const asked = Promise.withResolvers<Ask>()
    const port = await listen(async socket => {
      const next = async () => (await once(socket, 'data'))[0] as Buffer
      const hello = await next()
      socket.write(Buffer.of(5, method))
      let login: string | null = null
      if (method === 2) {
        login = (await next()).subarray(1).toString('latin1')
        socket.write(Buffer.of(1, 0))
      }
      const command = await next()
      asked.resolve({ methods: [...hello.subarray(2)], login, command })
      // The greeting arrives in the same packet as the reply of the proxy.
      const answer = Buffer.of(5, reply, 0, 1, 127, 0, 0, 1, 0, 25)
      socket.write(Buffer.concat([answer, Buffer.from(reply === 0 ? '220 behind\r\n' : '')]))
    })
    return { port, asked: asked.promise }
  }

  test('connects to the address without losing early data', async () => {
    const { port, asked } = await proxy()
    const dial = tcpDial({ ...DIRECT, proxy: `socks5://127.0.0.1:${port}` })
    const socket = await dial.connect({ ip: '192.0.2.7', port: 25, host: 'mx.invalid' }, never)
    expect(String((await once(socket, 'data'))[0])).toBe('220 behind\r\n')
    expect([...(await asked).command]).toEqual([5, 1, 0, 1, 192, 0, 2, 7, 0, 25])
    socket.destroy()
  })

  test('receives the unescaped user name and password', async () => {
    const { port, asked } = await proxy(0, 2)
    const dial = tcpDial({ ...DIRECT, proxy: `socks5://us%40er:p%3Aw@127.0.0.1:${port}` })
    const socket = await dial.connect(target(25), never)
    expect((await asked).login).toBe('\x05us@er\x03p:w')
    socket.destroy()
  })

  test.each([
    ['a rule forbids the port', 2, 0, 'EPROXYRULE'],
    ['it fails itself', 1, 0, 'EPROXYFAULT'],
    ['the network is unreachable', 3, 0, 'EPROXYTARGET'],
    ['the host is unreachable', 4, 0, 'EPROXYTARGET'],
    ['the server refuses', 5, 0, 'EPROXYTARGET'],
    ['it accepts no login without a password', 0, 0xff, 'EPROXYAUTH'],
  ])('says with a code that %s', async (_, reply, method, code) => {
    const { port } = await proxy(reply, method)
    const dial = tcpDial({ ...DIRECT, proxy: `socks5://127.0.0.1:${port}` })
    await expect(dial.connect(target(25), never)).rejects.toMatchObject({ code })
  })

  test('says with a code that the password is wrong', async () => {
    const port = await listen(async socket => {
      await once(socket, 'data')
      socket.write(Buffer.of(5, 2))
      await once(socket, 'data')
      socket.write(Buffer.of(1, 1))
    })
    const dial = tcpDial({ ...DIRECT, proxy: `socks5://ann:wrong@127.0.0.1:${port}` })
    await expect(dial.connect(target(25), never)).rejects.toMatchObject({ code: 'EPROXYAUTH' })
  })

  test('says with a code that no proxy responds', async () => {
    const port = await listen(socket => socket.end())
    for (const [at, code] of [
      [port, 'EPROXYCLOSED'],
      [1, 'EPROXYDOWN'],
    ]) {
      const dial = tcpDial({ ...DIRECT, proxy: `socks5://127.0.0.1:${at}` })
      await expect(dial.connect(target(25), never)).rejects.toMatchObject({ code })
    }
  })

  test('is abandoned on an abort', async () => {
    const port = await listen(() => {})
    const limit = new AbortController()
    const dial = tcpDial({ ...DIRECT, proxy: `socks5h://127.0.0.1:${port}` })
    const connecting = dial.connect(target(25), limit.signal)
    limit.abort()
    await expect(connecting).rejects.toThrow('given up')
    await expect(dial.connect(target(25), AbortSignal.abort())).rejects.toThrow()
  })

  test.each(['http://a.test:1', 'a.test:1080', 'socks5://', 'socks4://a.test', ''])(
    '%j is not a valid proxy URL',
    proxy => {
      expect(() => tcpDial({ ...DIRECT, proxy })).toThrow(/socks5:\/\//)
    },
  )
})

describe('TLS', () => {
  const { key, cert } = selfSigned('mx.example')

  /** Starts a server that uses TLS at once; returns the SNI name. */
  async function tlsServer() {
    const names: (string | false | null)[] = []
    const port = await listen(socket => {
      const secure = new TLSSocket(socket, {
        isServer: true,
        key,
        cert,
        SNICallback: (name, done) => {
          names.push(name)
          done(null)
        },
      })
      secure.on('error', () => {})
      secure.write('250 sealed\r\n')
    })
    return { port, names }
  }

  test('accepts an untrusted certificate', async () => {
    const { port, names } = await tlsServer()
    const dial = tcpDial(DIRECT)
    const plain = await dial.connect(target(port), never)
    const secure = await dial.secure(plain, 'mx.example.', never)
    expect(String((await once(secure, 'data'))[0])).toBe('250 sealed\r\n')
    expect(names).toEqual(['mx.example'])
    secure.destroy()
  })

  test.each(['192.0.2.1', '2001:db8::1', '_odd.example', ''])(
    'does not send %j as a server name',
    async host => {
      const { port, names } = await tlsServer()
      const dial = tcpDial(DIRECT)
      const secure = await dial.secure(await dial.connect(target(port), never), host, never)
      expect(names).toEqual([])
      secure.destroy()
    },
  )

  test.each([
    ['talks something else', (socket: Socket) => socket.write('220 what?\r\n'.repeat(9))],
    ['hangs up', (socket: Socket) => socket.end()],
    ['breaks off', (socket: Socket) => socket.resetAndDestroy()],
  ])('fails when the server %s', async (_, serve) => {
    const port = await listen(socket => socket.once('data', () => serve(socket)))
    const dial = tcpDial(DIRECT)
    const plain = await dial.connect(target(port), never)
    plain.on('error', () => {})
    await expect(dial.secure(plain, 'mx.example', never)).rejects.toThrow()
  })

  test('that stalls ends on an abort', async () => {
    const port = await listen(() => {})
    const dial = tcpDial(DIRECT)
    const plain = await dial.connect(target(port), never)
    const limit = new AbortController()
    const securing = dial.secure(plain, 'mx.example', limit.signal)
    limit.abort()
    await expect(securing).rejects.toThrow('given up')
  })

  test('that stalls ends when the connection below is destroyed', async () => {
    const port = await listen(() => {})
    const dial = tcpDial(DIRECT)
    const plain = await dial.connect(target(port), never)
    const securing = dial.secure(plain, 'mx.example', never)
    plain.destroy()
    await expect(securing).rejects.toThrow()
  })

  test('does not start after an abort', async () => {
    const port = await listen(() => {})
    const dial = tcpDial(DIRECT)
    const plain = await dial.connect(target(port), never)
    await expect(dial.secure(plain, 'mx.example', AbortSignal.abort())).rejects.toThrow()
    plain.destroy()
  })

  test('fails on a closed connection', async () => {
    const port = await listen(() => {})
    const dial = tcpDial(DIRECT)
    const plain = await dial.connect(target(port), never)
    plain.destroy()
    await once(plain, 'close')
    await expect(dial.secure(plain, 'mx.example', never)).rejects.toThrow()
  })

  test('fails on a stream without a socket when the peer closes it', async () => {
    const [client, server] = duplexPair()
    server.resume()
    const securing = tcpDial(DIRECT).secure(client, 'mx.example', never)
    server.end()
    await expect(securing).rejects.toThrow()
  })
})

describe('the addresses that can be dialed', () => {
  const withAddresses = (...addresses: string[]) => ({
    lo: ['127.0.0.1', '::1'].map(address => ({ address, internal: true })),
    eth0: addresses.map(address => ({ address, internal: false })),
  })

  test.each<[string, DialOptions, Parameters<typeof getDialFamilies>[1], AddressFamilies]>([
    ['both with both', DIRECT, withAddresses('192.0.2.1', '2001:db8::1'), 'both'],
    ['both with a private IPv4 address', DIRECT, withAddresses('10.0.0.1', '2001:db8::1'), 'both'],
    ['IPv6 with IPv6 alone', DIRECT, withAddresses('2001:db8::1', 'fe80::1'), 'ipv6'],
    [
      'IPv6 with an IPv4 address of the link (RFC 3927)',
      DIRECT,
      withAddresses('169.254.7.7', '2001:db8::1'),
      'ipv6',
    ],
    ['IPv4 with IPv4 alone', DIRECT, withAddresses('192.0.2.1'), 'ipv4'],
    ['IPv4 with an IPv6 address of the link', DIRECT, withAddresses('fe80::1'), 'ipv4'],
    ['IPv4 with a private IPv6 address (RFC 4193)', DIRECT, withAddresses('fd00::1'), 'ipv4'],
    ['IPv4 without any, to report its error', DIRECT, { lo: undefined }, 'ipv4'],
    [
      'IPv4 from an IPv4 source address',
      { ...DIRECT, sourceAddress: '192.0.2.1' },
      withAddresses('2001:db8::1'),
      'ipv4',
    ],
    [
      'IPv6 from an IPv6 source address',
      { ...DIRECT, sourceAddress: '2001:db8::1' },
      withAddresses('192.0.2.1'),
      'ipv6',
    ],
    [
      'both by way of a proxy, as far as is known here',
      { ...DIRECT, proxy: 'socks5://127.0.0.1:1080' },
      withAddresses('192.0.2.1'),
      'both',
    ],
  ])('are %s', (_, options, interfaces, families) => {
    expect(getDialFamilies(options, interfaces)).toBe(families)
  })
})
