import type { EventEmitter } from 'node:events'
import { createServer, type Server } from 'node:http'
import { createSecureServer, type Http2SecureServer, type ServerHttp2Session } from 'node:http2'
import type { AddressInfo, Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { breathe, SECOND, sleep } from '../../base/clock.ts'
import { messageOf } from '../../base/error.ts'
import { ApiError } from '../error/api-error.ts'
import type { ServerLimits } from './limits.ts'
import { type ListenerParts, requestListener } from './listener.ts'
import { listening } from './listening.ts'
import type { NodeRequest, NodeResponse } from './node.ts'
import { refuse } from './refusal.ts'
import { seldom } from './seldom.ts'
import { guardSession } from './session-guard.ts'
import type { Certificate } from './tls/certificate.ts'
import { type Line, Traffic } from './traffic.ts'
import { onQuiet, parserAnswers, refuseConnect } from './unheard.ts'

export type ServerParts = Omit<ListenerParts, 'traffic'> & {
  readonly host: string
  /** 0: any that is free. */
  readonly port: number
  /** Null: plain HTTP. */
  readonly certificate: Certificate | null
}

/** A server that listens. */
export interface HttpServer {
  readonly port: number
  /** From now on new connections have this certificate. */
  renew(certificate: Certificate): void
  /** Listens no longer; what was sent is answered, within `graceMs`. May be called twice, the shorter grace counts. */
  stop(graceMs: number): Promise<void>
}

/** Listens for HTTP/1.1, with a certificate also for HTTP/2. Throws EvError when it cannot listen there. */
export async function startServer(parts: ServerParts): Promise<HttpServer> {
  const { clock, limits } = parts
  const traffic = new Traffic()
  const server = parts.certificate === null ? plainServer(limits) : tlsServer(parts)
  listenTo(server, { ...parts, traffic })
  await listening(server, parts)
  server.on('error', error => parts.log.error('the server failed', { why: messageOf(error) }))
  return {
    port: (server.address() as AddressInfo).port,
    renew({ cert, key }) {
      if ('setSecureContext' in server) server.setSecureContext({ ...TLS, cert, key })
    },
    async stop(graceMs) {
      traffic.endSoon()
      for (let turn = 0; turn < TURNS_TO_READ; turn++) await breathe()
      server.close()
      clock.after(Math.min(UNUSED_MS, graceMs), () => traffic.closeUnused())
      const quiet = new AbortController()
      const empty = traffic.empty().then(() => quiet.abort())
      await sleep(clock, graceMs, quiet.signal)
      traffic.closeAll()
      await empty
    },
  }
}

/**
 * Turns of the event loop in which what clients have sent is read: a new connection is accepted in one and
 * read in the next. Closed unread, a connection is reset, and a client does not know what became of its request.
 */
const TURNS_TO_READ = 3

/** How long a request that is half sent may take, once we stop. */
const UNUSED_MS = 1_000

/** Whoever is turned away comes again at once, and may be many. */
const DROPS_TOLD_EVERY_MS = 10 * SECOND

/** TLS 1.0 and 1.1 are long broken (RFC 8996). */
const TLS = { minVersion: 'TLSv1.2' } as const

const plainServer = (limits: ServerLimits): Server => createServer(http1Options(limits))

function tlsServer({ certificate, limits }: ServerParts): Http2SecureServer {
  const { cert, key } = certificate as Certificate
  const http1 = http1Options(limits)
  return createSecureServer({
    ...TLS,
    ...http1,
    cert,
    key,
    allowHTTP1: true,
    handshakeTimeout: limits.tlsHandshakeMs,
    settings: {
      maxConcurrentStreams: limits.streamsMax,
      maxHeaderListSize: limits.headersSizeMax,
      enablePush: false,
    },
    maxHeaderListPairs: limits.headersMax,
    streamResetBurst: limits.resetsBurst,
    streamResetRate: limits.resetsPerSecond,
  })
}

const http1Options = (limits: ServerLimits) => ({
  headersTimeout: limits.headersMs,
  // A net below the timers of the listener, which know what is asked.
  requestTimeout: limits.listBodyMs + limits.headersMs + limits.checkMs,
  connectionsCheckingInterval: limits.checkMs,
  keepAliveTimeout: limits.keepAliveMs,
  keepAliveTimeoutBuffer: limits.keepAliveBufferMs,
  maxHeaderSize: limits.headersSizeMax,
  // Node would answer that by itself.
  requireHostHeader: false,
})

/** Everything that a server tells of, both kinds alike. */
function listenTo(server: Server | Http2SecureServer, parts: ListenerParts): void {
  const { log, limits, traffic } = parts
  server.maxConnections = limits.connectionsMax
  // Node 22 does not take these as options of a server that also speaks HTTP/2.
  Object.assign(server, { timeout: limits.stallMs, ...http1Options(limits) })
  const on = (event: string, hear: (...told: never[]) => void) =>
    void (server as EventEmitter).on(event, hear as (...told: unknown[]) => void)
  on('request', requestListener(parts))
  on('checkExpectation', (_: NodeRequest, response: NodeResponse) =>
    refuse(
      response,
      parts,
      new ApiError('expectation_failed', 'Only 100-continue can be expected'),
    ),
  )
  on('clientError', parserAnswers(parts))
  on('connect', (_: unknown, to: Socket | NodeResponse) => refuseConnect(to, parts))
  on('timeout', (line: Line) => onQuiet(line, parts))
  const tellDrops = (connections: number) =>
    log.warn('connections were turned away', { connections, open: limits.connectionsMax })
  on('drop', seldom(parts.clock, DROPS_TOLD_EVERY_MS, tellDrops))
  if ('setSecureContext' in server) {
    on('secureConnection', (socket: TLSSocket) => {
      if (socket.alpnProtocol !== 'h2') traffic.note(socket)
    })
    on('session', (session: ServerHttp2Session) => {
      traffic.note(session)
      guardSession(session, parts.clock, limits)
    })
  } else {
    // One more than is allowed: Node leaves out what is above it without a word.
    server.maxHeadersCount = limits.headersMax + 1
    on('connection', (socket: Socket) => traffic.note(socket))
  }
}
