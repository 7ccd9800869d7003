import { once } from 'node:events'
import { createServer as createPlain, type IncomingHttpHeaders } from 'node:http'
import { createServer, type ServerOptions } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import type { TLSSocket } from 'node:tls'
import { type Clock, systemClock } from '../../src/platform/clock.ts'
import { type CertificateKind, certificateOf, testAuthority } from './certificate.ts'
import { answerAs } from './http-receiver-reply.ts'

export type ReceiverOptions = {
  /** The name in its certificate and in `url`; `hook.example` when left out. Tests' zones let it mean 127.0.0.1. */
  readonly name?: string
  /** Where it listens; 127.0.0.1 when left out, at a port of the system's choice. */
  readonly ip?: string
  readonly port?: number
  readonly certificate?: CertificateKind
  /** The newest version that it speaks; `none`: plain HTTP. */
  readonly tls?: 'TLSv1.1' | 'TLSv1.2' | 'TLSv1.3' | 'none'
  readonly answer?: How
  /** True: it never closes an idle connection. Node's default is after five seconds. */
  readonly keepsIdle?: boolean
  /** For delays and trickling; the system's when left out. */
  readonly clock?: Clock
}

/** A request as it came in. */
export type Received = {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  /** The bytes of its body. */
  readonly body: Buffer
  /** Epoch ms, of the receiver's clock. */
  readonly at: number
  /** The name that was asked for in the handshake; null: none. */
  readonly serverName: string | null
  /** Number of the connection it came by, from 1. */
  readonly connection: number
}

/** What a receiver does with a request. */
export type Told = {
  /** 200 when left out. */
  readonly status?: number
  readonly headers?: Readonly<Record<string, string | string[]>>
  readonly body?: string | Buffer
  /** By the receiver's clock, before it says anything. */
  readonly delayMs?: number
  /** So many `103 Early Hints` come first. */
  readonly hints?: number
  /** What follows the headers and `body` in place of the end: a reset, a byte a second for ever, or a gigabyte. */
  readonly end?: 'reset' | 'trickle' | 'flood'
  /** Written in place of an answer; the connection is closed after it. */
  readonly raw?: string
  /** Follows `raw` again and again, for as long as the connection stays; up to a gigabyte. */
  readonly pour?: string
}

/** A status, what it does, or what it does with each request. */
export type How = number | Told | ((request: Received, nth: number) => Answered | Promise<Answered>)
type Answered = number | Told

export type Receiver = {
  /** `https://hook.example:PORT/hook` */
  readonly url: string
  readonly port: number
  /** PEM of the authority to believe. */
  readonly ca: string
  /** All that came in whole, in order. */
  readonly received: Received[]
  /** Of TCP: how many came, how many are open, and how many were at most. */
  readonly connections: { readonly came: number; readonly open: number; readonly most: number }
  /** How many bytes it could send of what floods and pours. */
  readonly flooded: number
  /** What it does from now on. */
  answer(how: How): void
  close(): Promise<void>
}

/** A real HTTPS server on the loopback that keeps what it gets and answers 200, or as it is told. */
export async function startReceiver(options: ReceiverOptions = {}): Promise<Receiver> {
  const { name = 'hook.example', ip = '127.0.0.1', clock = systemClock } = options
  let how: How = options.answer ?? 200
  const received: Received[] = []
  const connections = { came: 0, open: 0, most: 0 }
  const sockets = new Map<number, { socket: Socket; nth: number }>()
  let flooded = 0

  const server = options.tls === 'none' ? createPlain() : createServer(tlsOf(options, name, ip))
  server.on('connection', (socket: Socket) => {
    connections.came += 1
    connections.open += 1
    connections.most = Math.max(connections.most, connections.open)
    const port = socket.remotePort ?? 0
    sockets.set(port, { socket, nth: connections.came })
    socket.on('error', () => {})
    socket.once('close', () => {
      connections.open -= 1
      sockets.delete(port)
    })
  })
  if (options.keepsIdle) server.keepAliveTimeout = 0
  server.on('tlsClientError', () => {})
  server.on('request', async (request, response) => {
    response.on('error', () => {})
    const wire = sockets.get(request.socket.remotePort ?? 0)
    const body = await buffer(request).catch(() => null)
    if (body === null || wire === undefined) return
    const asked = (request.socket as TLSSocket).servername as string | false | undefined
    const letter: Received = {
      method: request.method ?? '',
      path: request.url ?? '',
      headers: request.headers,
      body,
      at: clock.now(),
      serverName: asked || null,
      connection: wire.nth,
    }
    received.push(letter)
    const told = typeof how === 'function' ? await how(letter, received.length) : how
    const doing = typeof told === 'number' ? { status: told } : told
    flooded += await answerAs(doing, response, { clock, socket: wire.socket })
  })
  server.listen(options.port ?? 0, ip)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `https://${name}:${port}/hook`,
    port,
    ca: testAuthority().cert,
    received,
    connections,
    get flooded() {
      return flooded
    },
    answer(next) {
      how = next
    },
    async close() {
      const closed = new Promise(resolve => server.close(resolve))
      for (const { socket } of sockets.values()) socket.destroy()
      await closed
    },
  }
}

function tlsOf(options: ReceiverOptions, name: string, ip: string): ServerOptions {
  const own = certificateOf(options.certificate ?? 'right', name, ip)
  // Nobody speaks it any more unless made to.
  const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'ALL:@SECLEVEL=0' } as const
  if (options.tls === 'TLSv1.1') return { ...own, ...old }
  return { ...own, maxVersion: options.tls === 'TLSv1.2' ? 'TLSv1.2' : 'TLSv1.3' }
}
