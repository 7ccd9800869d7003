import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https'
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net'
import { type Clock, SECOND, sleep, yieldToEventLoop } from '../../platform/clock.ts'
import { EvError, errorMessage } from '../../platform/error.ts'
import { writeLog } from '../../platform/log.ts'
import type { ApiError } from '../errors/api-error.ts'
import { requestError } from '../errors/request-errors.ts'
import { API_LOG } from '../telemetry.ts'
import type { Certificate } from './certificate.ts'
import { ConnectionTracker, closeAfterResponse } from './connections.ts'
import type { ServerLimits } from './limits.ts'
import { type ListenerDeps, requestListener } from './listener.ts'
import { fromParserError, refuse, sendErrorAndClose } from './reject.ts'

export type ServerDeps = Omit<ListenerDeps, 'traffic'> & {
  readonly host: string
  /** 0 selects any free port. */
  readonly port: number
  /** Null for plain HTTP. */
  readonly certificate: Certificate | null
}

/** A listening HTTP server. */
export interface HttpServer {
  readonly port: number
  /** Uses this certificate for new connections. */
  renew(certificate: Certificate): void
  /**
   * Stops listening and answers pending requests within `graceMs`. May be called twice; the shorter
   * grace period applies.
   */
  stop(graceMs: number): Promise<void>
}

/**
 * Starts an HTTP/1.1 server, over TLS if there is a certificate. Throws EvError if it cannot
 * listen.
 */
export async function startServer(deps: ServerDeps): Promise<HttpServer> {
  const { clock, limits } = deps
  const traffic = new ConnectionTracker(limits.connectionsMax)
  const server = deps.certificate === null ? plainServer(limits) : tlsServer(deps)
  registerHandlers(server, { ...deps, traffic })
  await listen(server, deps)
  server.on('error', error => writeLog(deps.log, API_LOG.serverError, { why: errorMessage(error) }))
  return {
    port: (server.address() as AddressInfo).port,
    renew({ cert, key }) {
      if ('setSecureContext' in server) server.setSecureContext({ ...TLS, cert, key })
    },
    async stop(graceMs) {
      traffic.endSoon()
      for (let turn = 0; turn < READ_TURNS; turn++) await yieldToEventLoop()
      // The method of http.Server also closes idle connections.
      NetServer.prototype.close.call(server)
      const cancels = [
        clock.after(Math.min(IDLE_MS, graceMs), () => server.closeIdleConnections()),
        clock.after(Math.min(UNUSED_MS, graceMs), () => traffic.closeUnused()),
      ]
      const drained = new AbortController()
      const empty = traffic.empty().then(() => drained.abort())
      await sleep(clock, graceMs, drained.signal)
      traffic.closeAll()
      await empty
      for (const cancel of cancels) cancel()
      server.close()
    },
  }
}

/**
 * Turns of the event loop to read what clients have sent: a new connection is accepted in one and
 * read in the next. A connection that is closed unread is reset, and the client cannot tell whether
 * its request was processed.
 */
const READ_TURNS = 3

/**
 * Time for a request that is in transit on an idle connection during shutdown: a proxy does not
 * repeat a POST whose connection was closed.
 */
const IDLE_MS = 200

/** Time for a partially sent request during shutdown. */
const UNUSED_MS = 1_000

/** Refused clients retry at once, and there can be many. */
const DROP_LOG_INTERVAL_MS = 10 * SECOND

/**
 * TLS 1.0 and 1.1 are deprecated (RFC 8996). With TLS 1.2, cipher suites have forward secrecy and
 * authenticated encryption (RFC 9325 §4.2); with TLS 1.3 all have.
 */
const TLS = {
  minVersion: 'TLSv1.2',
  ciphers: [
    ...['TLS_AES_128_GCM_SHA256', 'TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256'],
    ...['ECDHE-ECDSA-AES128-GCM-SHA256', 'ECDHE-RSA-AES128-GCM-SHA256'],
    ...['ECDHE-ECDSA-AES256-GCM-SHA384', 'ECDHE-RSA-AES256-GCM-SHA384'],
    ...['ECDHE-ECDSA-CHACHA20-POLY1305', 'ECDHE-RSA-CHACHA20-POLY1305'],
  ].join(':'),
} as const

const plainServer = (limits: ServerLimits): Server => createServer(httpOptions(limits))

function tlsServer({ certificate, limits }: ServerDeps): TlsServer {
  const { cert, key } = certificate as Certificate
  const handshakeTimeout = limits.tlsHandshakeMs
  return createTlsServer({ ...TLS, ...httpOptions(limits), cert, key, handshakeTimeout })
}

const httpOptions = (limits: ServerLimits) => ({
  headersTimeout: limits.headersMs,
  // A fallback for the timers of the listener, which depend on the path.
  requestTimeout: limits.listBodyMs + limits.headersMs + limits.checkMs,
  connectionsCheckingInterval: limits.checkMs,
  keepAliveTimeout: limits.keepAliveMs,
  keepAliveTimeoutBuffer: limits.keepAliveBufferMs,
  maxHeaderSize: limits.headersSizeMax,
  // As the Headers of a Request do. By default Node drops all but the first of some headers.
  joinDuplicateHeaders: true,
  // The listener checks it: Node would send its own response.
  requireHostHeader: false,
})

/** Registers the event handlers of a server, with or without TLS. */
function registerHandlers(server: Server | TlsServer, deps: ListenerDeps): void {
  const { log, limits, traffic } = deps
  server.maxConnections = limits.connectionsMax + limits.refusedConnectionsMax
  server.timeout = limits.stallMs
  // One more than allowed: Node drops headers above this silently.
  server.maxHeadersCount = limits.headersMax + 1
  server.on('request', requestListener(deps))
  server.on('checkExpectation', (_: IncomingMessage, response: ServerResponse) =>
    refuse(response, deps, requestError('expectation_not_supported')),
  )
  server.on('clientError', parserErrorHandler(deps))
  server.on('connect', (_, socket) => refuseConnect(socket as Socket, deps))
  server.on('timeout', socket => void onIdle(socket, deps))
  const logDrops = (connections: number) =>
    writeLog(log, API_LOG.connectionsRefused, { connections, open: limits.connectionsMax })
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
 * Answers unparsable requests, once for each connection. Node's own 400, 408 and 431 lack the limit
 * headers that every response has (section 8 of the interface), and Node closes at once, which
 * resets a client that is still sending.
 */
function parserErrorHandler(deps: ListenerDeps): (error: Error, socket: Socket) => void {
  const answered = new WeakSet<Socket>()
  return (error, socket) => {
    const fault = fromParserError(error)
    if (fault === null || !socket.writable) return void socket.destroy()
    // Input after it cannot be parsed either.
    if (answered.has(socket)) return
    answered.add(socket)
    answerParserError(fault, socket, deps)
  }
}

function answerParserError(fault: ApiError, socket: Socket, deps: ListenerDeps): void {
  const unanswered = deps.traffic.unanswered(socket)
  const broken = unanswered.find(({ req }) => !req.complete)
  const last = unanswered.at(-1)
  if (broken?.headersSent) socket.destroy()
  else if (broken !== undefined) refuse(broken, deps, fault)
  // Earlier requests are answered first; the last response closes the connection.
  else if (last !== undefined) closeAfterResponse(last)
  // Its last response is sent.
  else if (deps.traffic.isClosing(socket)) socket.destroy()
  else sendErrorAndClose(fault, socket, deps)
}

/** CONNECT requests a tunnel, which only a proxy provides (RFC 9110 §9.3.6). */
function refuseConnect(socket: Socket, deps: ListenerDeps): void {
  sendErrorAndClose(requestError('connect_not_supported'), socket, deps)
}

/** Handles a connection that was idle for the timeout of its socket. */
async function onIdle(socket: Socket, { limits, traffic }: ListenerDeps): Promise<void> {
  // Node runs timers before it reads: a busy service may not have read a request that arrived in
  // time, and closing now would reset the connection.
  const { bytesRead } = socket
  await yieldToEventLoop()
  if (socket.bytesRead > bytesRead) return
  const unanswered = traffic.unanswered(socket)
  // A response is in progress, such as a long poll, which has its own timeout.
  if (unanswered.some(response => !response.headersSent && response.req.complete))
    socket.setTimeout(limits.stallMs)
  else socket.destroy()
}

/**
 * Logs an event that can occur a thousand times a second: the first one at once, then once per
 * `everyMs` with the count.
 */
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

/** Starts to listen. Throws EvError with the reason and a remedy. */
function listen(
  server: NetServer,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (cause: NodeJS.ErrnoException) => reject(cannotListen(host, port, cause))
    server.once('error', fail)
    server.listen({ host, port, backlog: BACKLOG }, () => {
      server.off('error', fail)
      resolve()
    })
  })
}

/**
 * Connections that the kernel queues until the event loop accepts them. It does not answer a SYN
 * above this, and the client retransmits after 1, 3 and 7 s (RFC 6298). Linux caps it at
 * net.core.somaxconn, 4,096 since 5.4.
 */
const BACKLOG = 4_096

function cannotListen(host: string, port: number, cause: NodeJS.ErrnoException): EvError {
  const address = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
  const [why, remedy] = REMEDIES[cause.code ?? ''] ?? [
    cause.message,
    'Choose another address with --listen.',
  ]
  return new EvError('io', `ev cannot listen on ${address}: ${why}. ${remedy}`, { cause })
}

const REMEDIES: Readonly<Record<string, [why: string, remedy: string]>> = {
  EADDRINUSE: [
    'the port is already in use',
    'Stop the other program, or choose another port with --listen.',
  ],
  EACCES: [
    'permission denied',
    'Ports below 1024 require CAP_NET_BIND_SERVICE (AmbientCapabilities= of systemd). Or choose a higher port with --listen, behind a proxy.',
  ],
  EADDRNOTAVAIL: [
    'this machine has no such address',
    'Choose one of its addresses with --listen, or 0.0.0.0 for all.',
  ],
  ENOTFOUND: ['the host name is unknown', 'Choose an address of this machine with --listen.'],
}
