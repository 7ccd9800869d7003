import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { type Clock, SECOND, sleep, yieldToEventLoop } from '../../platform/clock.ts'
import { errorMessage } from '../../platform/error.ts'
import { ApiError } from '../errors/api-error.ts'
import type { Certificate } from './certificate.ts'
import { ConnectionTracker, keepNoLonger } from './connections.ts'
import type { ServerLimits } from './limits.ts'
import { listen } from './listen.ts'
import { type ListenerDeps, requestListener } from './listener.ts'
import { closeWith, faultOfParser, refuse } from './reject.ts'

export type ServerDeps = Omit<ListenerDeps, 'traffic'> & {
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

/** Listens for HTTP/1.1, over TLS with a certificate. Throws EvError when it cannot listen there. */
export async function startServer(deps: ServerDeps): Promise<HttpServer> {
  const { clock, limits } = deps
  const traffic = new ConnectionTracker(limits.connectionsMax)
  const server = deps.certificate === null ? plainServer(limits) : tlsServer(deps)
  listenTo(server, { ...deps, traffic })
  await listen(server, deps)
  server.on('error', error => deps.log.error('the server failed', { why: errorMessage(error) }))
  return {
    port: (server.address() as AddressInfo).port,
    renew({ cert, key }) {
      if ('setSecureContext' in server) server.setSecureContext({ ...TLS, cert, key })
    },
    async stop(graceMs) {
      traffic.endSoon()
      for (let turn = 0; turn < TURNS_TO_READ; turn++) await yieldToEventLoop()
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
const DROP_LOG_INTERVAL_MS = 10 * SECOND

/** TLS 1.0 and 1.1 are long broken (RFC 8996). */
const TLS = { minVersion: 'TLSv1.2' } as const

const plainServer = (limits: ServerLimits): Server => createServer(httpOptions(limits))

function tlsServer({ certificate, limits }: ServerDeps): TlsServer {
  const { cert, key } = certificate as Certificate
  const handshakeTimeout = limits.tlsHandshakeMs
  return createTlsServer({ ...TLS, ...httpOptions(limits), cert, key, handshakeTimeout })
}

const httpOptions = (limits: ServerLimits) => ({
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
function listenTo(server: Server | TlsServer, deps: ListenerDeps): void {
  const { log, limits, traffic } = deps
  server.maxConnections = limits.connectionsMax + limits.refusedConnectionsMax
  server.timeout = limits.stallMs
  // One more than is allowed: Node leaves out what is above it without a word.
  server.maxHeadersCount = limits.headersMax + 1
  server.on('request', requestListener(deps))
  server.on('checkExpectation', (_: IncomingMessage, response: ServerResponse) =>
    refuse(response, deps, new ApiError('expectation_failed', 'Only 100-continue can be expected')),
  )
  server.on('clientError', parserAnswers(deps))
  server.on('connect', (_, socket) => refuseConnect(socket as Socket, deps))
  server.on('timeout', socket => onQuiet(socket, deps))
  const logDrops = (connections: number) =>
    log.warn('connections were turned away', { connections, open: limits.connectionsMax })
  const opened = 'setSecureContext' in server ? 'secureConnection' : 'connection'
  const rejectSurplus = throttled(deps.clock, DROP_LOG_INTERVAL_MS, logDrops)
  server.on('drop', rejectSurplus)
  server.on(opened, (socket: Socket) => {
    traffic.track(socket)
    if (!traffic.isSurplus(socket)) return
    rejectSurplus()
    socket.setTimeout(limits.refusedMs)
  })
}

/**
 * Answers what the parser could not read, once for each connection. Node's own 400, 408 and 431 lack the limit headers
 * that every response has (section 8 of the interface), and it closes at once: a client that still sends is reset.
 */
function parserAnswers(deps: ListenerDeps): (error: Error, socket: Socket) => void {
  const answered = new WeakSet<Socket>()
  return (error, socket) => {
    const fault = faultOfParser(error)
    if (fault === null || !socket.writable) return void socket.destroy()
    // What is sent after it cannot be read either.
    if (answered.has(socket)) return
    answered.add(socket)
    answerParser(fault, socket, deps)
  }
}

function answerParser(fault: ApiError, socket: Socket, deps: ListenerDeps): void {
  const unanswered = deps.traffic.unanswered(socket)
  const broken = unanswered.find(({ req }) => !req.complete)
  const last = unanswered.at(-1)
  if (broken?.headersSent) socket.destroy()
  else if (broken !== undefined) refuse(broken, deps, fault)
  // What came before is answered in its turn, and that is the last answer.
  else if (last !== undefined) keepNoLonger(last)
  else closeWith(fault, socket, deps)
}

/** RFC 9110 §9.3.6: a tunnel, which only a proxy makes. */
function refuseConnect(socket: Socket, deps: ListenerDeps): void {
  closeWith(new ApiError('method_not_allowed', 'CONNECT is not for this service'), socket, deps)
}

/** Nothing moved on a connection for a while. */
function onQuiet(socket: Socket, { limits, traffic }: ListenerDeps): void {
  const unanswered = traffic.unanswered(socket)
  // Somebody works on an answer, for instance a wait for a job: that has an end of its own.
  if (unanswered.some(one => !one.headersSent && one.req.complete))
    socket.setTimeout(limits.stallMs)
  else socket.destroy()
}

/** Tells of what may happen a thousand times a second: the first at once, then once in `everyMs`, with how many there were. */
export function throttled(clock: Clock, everyMs: number, log: (count: number) => void): () => void {
  let count = 0
  let quietUntil = Number.NEGATIVE_INFINITY
  return () => {
    count++
    if (clock.monotonicNow() < quietUntil) return
    quietUntil = clock.monotonicNow() + everyMs
    log(count)
    count = 0
  }
}
