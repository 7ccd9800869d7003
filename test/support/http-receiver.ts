import { once } from 'node:events'
import { createServer as createPlain, type IncomingHttpHeaders } from 'node:http'
import { createServer, type ServerOptions } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { buffer } from 'node:stream/consumers'
import type { TLSSocket } from 'node:tls'
import { type Clock, systemClock } from '../../src/platform/clock.ts'
import { type CertificateKind, certificateOf, testAuthority } from './certificate.ts'
import { sendReply } from './http-receiver-reply.ts'

export type ReceiverOptions = {
  /**
   * Name in the certificate and in `url`; defaults to `hook.example`, which test zones resolve to
   * 127.0.0.1.
   */
  readonly name?: string
  /** Listen address, 127.0.0.1 by default, and port, a free one by default. */
  readonly ip?: string
  readonly port?: number
  readonly certificate?: CertificateKind
  /** Highest TLS version; `none` for plain HTTP. */
  readonly tls?: 'TLSv1.1' | 'TLSv1.2' | 'TLSv1.3' | 'none'
  readonly answer?: How
  /** Never close idle connections; the default of Node is after five seconds. */
  readonly keepsIdle?: boolean
  /** Clock for delays and trickled bodies; defaults to the system clock. */
  readonly clock?: Clock
}

/** A received request. */
export type Received = {
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  /** The bytes of the body. */
  readonly body: Buffer
  /** Epoch ms, by the clock of the receiver. */
  readonly at: number
  /** Server name of the TLS handshake; null if it had none. */
  readonly serverName: string | null
}

/** A scripted response. */
export type ScriptedReply = {
  /** Defaults to 200. */
  readonly status?: number
  readonly headers?: Readonly<Record<string, string | string[]>>
  readonly body?: string | Buffer
  /** Delay before the response, by the clock of the receiver. */
  readonly delayMs?: number
  /** Number of preceding `103 Early Hints` responses. */
  readonly hints?: number
  /** Whether `100 Continue` precedes the response. */
  readonly isContinued?: boolean
  /**
   * What follows the headers and `body` instead of the end: a reset, a byte per second forever, or
   * a gigabyte.
   */
  readonly end?: 'reset' | 'trickle' | 'flood'
  /** Bytes sent instead of a response; then the connection is closed. */
  readonly raw?: string
  /** Repeated after `raw` while the connection is open, up to a gigabyte. */
  readonly pour?: string
}

/** A status, a response, or a function of each request. */
export type How =
  | number
  | ScriptedReply
  | ((request: Received, nth: number) => Answered | Promise<Answered>)
type Answered = number | ScriptedReply

export type Receiver = {
  /** `https://hook.example:PORT/hook` */
  readonly url: string
  readonly port: number
  /** PEM of the certificate authority to trust. */
  readonly ca: string
  /** The completely received requests, in order. */
  readonly received: Received[]
  /** TCP connections: total, open and peak. */
  readonly connections: { readonly opened: number; readonly open: number; readonly most: number }
  /** Number of bytes sent by `flood` and `pour`. */
  readonly flooded: number
  /** Sets the response from now on. */
  answer(respond: How): void
  close(): Promise<void>
}

/**
 * Starts an HTTPS server on loopback that records requests and responds with 200, or as scripted.
 */
export async function startReceiver(options: ReceiverOptions = {}): Promise<Receiver> {
  const { name = 'hook.example', ip = '127.0.0.1', clock = systemClock } = options
  let respond: How = options.answer ?? 200
  const received: Received[] = []
  const connections = { opened: 0, open: 0, most: 0 }
  const sockets = new Map<number, Socket>()
  let flooded = 0

  const server = options.tls === 'none' ? createPlain() : createServer(tlsOf(options, name, ip))
  server.on('connection', (socket: Socket) => {
    connections.opened += 1
    connections.open += 1
    connections.most = Math.max(connections.most, connections.open)
    const port = socket.remotePort ?? 0
    sockets.set(port, socket)
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
    const socket = sockets.get(request.socket.remotePort ?? 0)
    const body = await buffer(request).catch(() => null)
    if (body === null || socket === undefined) return
    const asked = (request.socket as TLSSocket).servername as string | false | undefined
    const entry: Received = {
      method: request.method ?? '',
      path: request.url ?? '',
      headers: request.headers,
      body,
      at: clock.now(),
      serverName: asked || null,
    }
    received.push(entry)
    const reply = typeof respond === 'function' ? await respond(entry, received.length) : respond
    const scripted = typeof reply === 'number' ? { status: reply } : reply
    flooded += await sendReply(scripted, response, { clock, socket })
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
      respond = next
    },
    async close() {
      const closed = new Promise(resolve => server.close(resolve))
      for (const socket of sockets.values()) socket.destroy()
      await closed
    },
  }
}

function tlsOf(options: ReceiverOptions, name: string, ip: string): ServerOptions {
  const own = certificateOf(options.certificate ?? 'right', name, ip)
  // TLS 1.1 needs a lowered security level.
  const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'ALL:@SECLEVEL=0' } as const
  if (options.tls === 'TLSv1.1') return { ...own, ...old }
  return { ...own, maxVersion: options.tls === 'TLSv1.2' ? 'TLSv1.2' : 'TLSv1.3' }
}
