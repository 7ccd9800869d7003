import type { IncomingMessage, ServerResponse } from 'node:http'
import { getRequestListener, type HttpBindings, RequestError } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import { type Clock, SECOND, yieldBatched } from '../../platform/clock.ts'
import { errorMessage } from '../../platform/error.ts'
import { type Log, writeLog } from '../../platform/log.ts'
import type { ApiError } from '../errors/api-error.ts'
import { requestError } from '../errors/request-errors.ts'
import { API_LOG } from '../telemetry.ts'
import { type ConnectionTracker, closeAfterResponse } from './connections.ts'
import type { ServerLimits } from './limits.ts'
import { type RefusalDeps, refusalResponse, refuse, sendError, socketIp } from './reject.ts'

export type ListenerDeps = RefusalDeps & {
  readonly fetch: (request: Request, bindings: HttpBindings) => Response | Promise<Response>
  readonly clock: Clock
  readonly log: Log
  readonly limits: ServerLimits
  readonly traffic: ConnectionTracker
  readonly mayBePlain: MayBePlain
  /** Whether the body of a request is a list, which has `listBodyMs` to arrive. Omitted: none is. */
  readonly takesList?: (request: IncomingMessage) => boolean
  /**
   * Calls `start` at once or later, or returns the error with which the request is refused, at a
   * fraction of the cost of the app. Left out to start each at once.
   */
  readonly admission?: (
    request: IncomingMessage,
    response: ServerResponse,
    start: () => void,
  ) => ApiError | null
}

/**
 * Whether a client may connect without TLS. `ip` is the address of its socket; `forwardedProto` is
 * the protocol in X-Forwarded-Proto, in lower case, or null if the header is missing.
 */
export type MayBePlain = (ip: string, forwardedProto: string | null) => boolean

type Listener = (request: IncomingMessage, response: ServerResponse) => void

/** Passes requests to the app. Invalid ones are answered here. */
export function requestListener(deps: ListenerDeps): Listener {
  const { limits, traffic } = deps
  const closeIfUnread = (request: IncomingMessage, response: ServerResponse) => {
    if (!isUnread(request)) return
    traffic.markClosing(request.socket)
    closeAfterBody(request, response)
  }
  const handle = getRequestListener(
    async (request, bindings) => {
      const { incoming, outgoing } = bindings as HttpBindings
      const response = await deps.fetch(request, bindings as HttpBindings)
      if (isUnread(incoming)) await yieldBatched()
      // The client left, or its body was late.
      if (isAnswered(outgoing)) {
        void response.body?.cancel().catch(() => {})
        return RESPONSE_ALREADY_SENT
      }
      closeIfUnread(incoming, outgoing)
      return response
    },
    // `hostname` is for HTTP/1.0, which needs no Host. The automatic cleanup would reset a
    // connection if the body has not arrived 500 ms after the response; `drainBody` waits as long
    // as for any body.
    {
      errorHandler: error => unhandled(deps, error),
      hostname: 'localhost',
      autoCleanupIncoming: false,
    },
  )
  const checkRequest = createRequestCheck(limits)
  return (request, response) => {
    const { socket } = request
    if (traffic.isClosing(socket)) return
    response.on('error', () => {}) // The client left; `close` notifies the source.
    const count = traffic.trackRequest(request, response)
    const error =
      connectionLimitError(request, deps) ?? tlsError(request, deps) ?? checkRequest(request)
    const isLast = count >= limits.requestsPerConnection
    if (error !== null || isLast) traffic.markClosing(socket)
    if (isLast) closeAfterResponse(response)
    if (error !== null) return refuse(response, deps, error)
    const start = { startedAt: deps.clock.monotonicNow(), bytesBefore: socket.bytesRead }
    void yieldBatched().then(() => awaitBody(deps, request, response, start))
    const run = () => void handle(request, response)
    if (deps.admission === undefined) return run()
    const refusal = deps.admission(request, response, run)
    if (refusal === null) return
    if (!isUnread(request)) return sendError(response, deps, refusal)
    void yieldBatched().then(() => {
      closeIfUnread(request, response)
      sendError(response, deps, refusal)
    })
  }
}

/**
 * Closes the connection after the response, which is sent before the body of its request has
 * arrived. A proxy that cancels such a request could send the next one on the same connection, and
 * its first bytes would be taken for the rest of the body (HAProxy 2.6 does). The rest is read
 * first: closing at once would reset the connection, and the client might never see the response.
 */
function closeAfterBody(request: IncomingMessage, response: ServerResponse): void {
  closeAfterResponse(response)
  const { socket } = request
  // Node calls it when the last response was sent.
  socket.destroySoon = () => {
    Reflect.deleteProperty(socket, 'destroySoon')
    if (request.complete) socket.destroySoon()
    else request.once('end', () => socket.destroySoon())
  }
}

/**
 * Watches a body that has not arrived completely in the turn of the event loop in which its headers
 * arrived, and drains it once the request is answered. Most bodies need neither.
 */
function awaitBody(
  deps: ListenerDeps,
  request: IncomingMessage,
  response: ServerResponse,
  start: BodyStart,
): void {
  if (request.complete || request.destroyed) return
  if (response.writableFinished) drainBody(request)
  else response.once('finish', () => drainBody(request))
  watchBody(request, deps, start, error => onLateBody(deps, request, response, error))
}

/** When the headers of a request arrived. */
type BodyStart = {
  /** By the monotonic clock. */
  readonly startedAt: number
  /** Bytes that its connection had received. */
  readonly bytesBefore: number
}

/** Handles errors before and after the app, which handles its own. */
function unhandled(deps: ListenerDeps, error: unknown): Response {
  const isClientError = error instanceof RequestError
  if (!isClientError) writeLog(deps.log, API_LOG.requestNotAnswered, { why: errorMessage(error) })
  return refusalResponse(
    isClientError
      ? requestError('request_not_parsed')
      : requestError('internal_error', { cause: error }),
    deps,
  )
}

/** True for a response of the app as well as for one on the bare socket. */
const isAnswered = (response: ServerResponse) =>
  response.headersSent || response.socket?.writable === false

/**
 * Reads and discards the rest of a body that was already answered: closing would reset the
 * connection.
 */
function drainBody(request: IncomingMessage): void {
  if (!request.complete) request.removeAllListeners('data').resume()
}

function connectionLimitError({ socket }: IncomingMessage, { limits, traffic }: ListenerDeps) {
  if (!traffic.isSurplus(socket)) return null
  return requestError('connections_exceeded', { max: limits.connectionsMax })
}

/** All requests must use TLS, which may end at a proxy. */
function tlsError(
  { socket, headers }: IncomingMessage,
  { mayBePlain }: ListenerDeps,
): ApiError | null {
  if ('encrypted' in socket || mayBePlain(socketIp(socket), forwardedProto(headers))) return null
  return requestError('https_required')
}

/** If there are several proxies, the first entry is the protocol of the client. */
function forwardedProto({
  'x-forwarded-proto': header,
}: IncomingMessage['headers']): string | null {
  const [first] = (typeof header === 'string' ? header : (header?.[0] ?? '')).split(',')
  const proto = (first ?? '').trim().toLowerCase()
  return proto === '' ? null : proto
}

/**
 * Calls `onLate` if the body of a request has not arrived in time, or arrives too slowly: a slow
 * client would hold its place, one of a few for large lists, for all of that time.
 */
function watchBody(
  request: IncomingMessage,
  { clock, limits, takesList }: ListenerDeps,
  { startedAt, bytesBefore }: BodyStart,
  onLate: (error: ApiError) => void,
): void {
  if (!hasBody(request)) return
  const timeoutMs = takesList?.(request) ? limits.listBodyMs : limits.bodyMs
  const check = () => {
    if (request.complete || request.destroyed) return
    const elapsedMs = clock.monotonicNow() - startedAt
    const received = request.socket.bytesRead - bytesBefore
    if (elapsedMs >= timeoutMs) onLate(requestError('body_late'))
    else if (isLarge(request) && isWaiting(request) && received < leastBytes(elapsedMs, limits))
      onLate(requestError('body_slow', { received }))
    else cancel = clock.after(Math.min(limits.slowBodyMs, timeoutMs - elapsedMs), check)
  }
  let cancel = clock.after(Math.min(limits.slowBodyMs, timeoutMs), check)
  const { socket } = request
  const end = () => {
    cancel()
    socket.off('close', end)
  }
  request.once('end', end)
  request.once('close', end)
  // Once it is answered, a request is not told that its connection was closed.
  socket.once('close', end)
}

/** A short body holds nothing that others wait for. Without a length, a body can have any size. */
const isLarge = ({ headers }: IncomingMessage) =>
  headers['content-length'] === undefined || Number(headers['content-length']) > LARGE_BYTES

const LARGE_BYTES = 1024 * 1024

/** Bytes that must have arrived; the first check is at `slowBodyMs`. */
const leastBytes = (elapsedMs: number, { bodyBytesPerSecondMin }: ServerLimits) =>
  (bodyBytesPerSecondMin * elapsedMs) / SECOND

/** Whether the client, and not the service, is the slower one: what has arrived is read. */
const isWaiting = (request: IncomingMessage) => request.readableLength === 0

/**
 * Whether a part of the body has not been read yet. A body that was sent with the headers is read in
 * the same turn of the event loop, but after them.
 */
const isUnread = (request: IncomingMessage) => !request.complete && hasBody(request)

/** A request has a body if it has one of these headers (RFC 9112 §6.3). */
const hasBody = ({ headers }: IncomingMessage) =>
  headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined

function onLateBody(
  deps: ListenerDeps,
  request: IncomingMessage,
  response: ServerResponse,
  error: ApiError,
): void {
  if (response.headersSent) request.destroy()
  else refuse(response, deps, error)
}

/**
 * Returns a function that validates a request before it is routed; it returns null if the request is
 * valid.
 */
function createRequestCheck({ headersMax }: Pick<ServerLimits, 'headersMax'>) {
  // Nearly all requests have the same one, and checking it costs two URLs.
  let lastHost: string | null = null
  return (request: IncomingMessage): ApiError | null => {
    if (request.rawHeaders.length / 2 > headersMax) {
      return requestError('too_many_headers', { headersMax })
    }
    const host = onlyHost(request)
    // RFC 9112 §3.2: without a Host header, or with several, the requested host is ambiguous.
    if (!isHealthCheck(request) && (host === null || (host !== lastHost && !isHost(host)))) {
      return requestError('host_invalid')
    }
    lastHost = host ?? lastHost
    const { url = '' } = request
    const [path = ''] = url.split('?', 1)
    const isValid = TARGET.test(url) && !url.includes('%00') && !DOT_SEGMENT.test(path)
    return isValid ? null : requestError('target_invalid')
  }
}

/** Load balancers use HTTP/1.0 for health checks, which has no Host. */
const isHealthCheck = ({ httpVersion, url = '', headers }: IncomingMessage) =>
  httpVersion === '1.0' && headers.host === undefined && /^\/(?:livez|readyz)$/.test(url)

/** A host name or an address in canonical form, with an optional port. */
function isHost(text: string): boolean {
  const [, name = '', port = '80'] = HOST.exec(text.toLowerCase()) ?? []
  return URL.canParse(`http://${name}:${port}`) && new URL(`http://${name}`).hostname === name
}

const HOST = /^([a-z0-9._-]+|\[[0-9a-f:.]+\])(?::(\d{1,5}))?$/

/**
 * RFC 9112 §3.2.1: a path with an optional query. The form for proxies is excluded, and characters
 * that some software treats as a slash.
 */
const TARGET = /^\/(?!\/)[!#-;=?-[\]^_`a-z{|}~]*$/i

/**
 * RFC 3986 §5.2.4: `/v1/../metrics` is `/metrics`, also in percent-encoding. Clients resolve such a
 * path before they send it, and a proxy that decides by the path may not.
 */
const DOT_SEGMENT = /\/(?:\.|%2e){1,2}(?:\/|$)/i

/** Returns the value of the Host header; null if there is none or more than one. */
function onlyHost({ rawHeaders }: IncomingMessage): string | null {
  let host: string | null = null
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? ''
    if (name.length !== HOST_NAME.length || name.toLowerCase() !== HOST_NAME) continue
    if (host !== null) return null
    host = rawHeaders[at + 1] ?? ''
  }
  return host
}

const HOST_NAME = 'host'
