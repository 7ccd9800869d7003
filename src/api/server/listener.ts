import type { IncomingMessage, ServerResponse } from 'node:http'
import { getRequestListener, type HttpBindings, RequestError } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import type { Clock } from '../../platform/clock.ts'
import { errorMessage } from '../../platform/error.ts'
import type { Log } from '../../platform/log.ts'
import { ApiError } from '../errors/api-error.ts'
import { type ConnectionTracker, keepNoLonger } from './connections.ts'
import type { ServerLimits } from './limits.ts'
import { answer, ipOf, type RefusalDeps, refusalResponse, refuse } from './reject.ts'

export type ListenerDeps = RefusalDeps & {
  readonly fetch: (request: Request, bindings: HttpBindings) => Response | Promise<Response>
  readonly clock: Clock
  readonly log: Log
  readonly limits: ServerLimits
  readonly traffic: ConnectionTracker
  readonly mayBePlain: MayBePlain
  /** What the app refuses, whatever else is asked: told here, it costs half. Null: nothing. */
  readonly overloadError?: (request: IncomingMessage) => ApiError | null
}

/**
 * Whether a client may speak with us without TLS: `ip` is the address of its socket, `forwardedProto` the protocol that
 * a proxy says its client spoke (X-Forwarded-Proto), in lower case; null: it says nothing.
 */
export type MayBePlain = (ip: string, forwardedProto: string | null) => boolean

export type Listener = (request: IncomingMessage, response: ServerResponse) => void

/** Hands requests to the app; what is wrong with one before that is answered here. */
export function requestListener(deps: ListenerDeps): Listener {
  const { clock, limits, traffic } = deps
  const hand = getRequestListener(
    (request, bindings) => whenOpen(deps, request, bindings as HttpBindings),
    // HTTP/1.0 needs no Host.
    // Its cleanup resets a connection whose body has not come 500 ms after the answer: `readOn` waits as long as for any body.
    {
      errorHandler: error => unhandled(deps, error),
      hostname: 'localhost',
      autoCleanupIncoming: false,
    },
  )
  // Sockets that close with an answer under way: what else was sent on them is not heard.
  const ending = new WeakSet<object>()
  return (request, response) => {
    const { socket } = request
    if (ending.has(socket)) return
    response.on('error', () => {}) // The client has left; what the answer is made of hears of it by `close`.
    const count = traffic.begin(request, response)
    const fault =
      surplusFault(request, deps) ?? plainFault(request, deps) ?? faultOfRequest(request, limits)
    const isLast = count >= limits.requestsPerConnection
    if (fault !== null || isLast) ending.add(socket)
    if (isLast) keepNoLonger(response)
    if (fault !== null) return refuse(response, deps, fault)
    response.once('finish', () => readOn(request))
    watchBody(clock, request, bodyMsOf(request, limits), () => late(deps, request, response))
    const tooBusy = deps.overloadError?.(request) ?? null
    if (tooBusy !== null) answer(response, deps, tooBusy)
    else void hand(request, response)
  }
}

/** What was answered here meanwhile, as its body came too late, the app need not answer. */
function whenOpen({ fetch }: ListenerDeps, request: Request, bindings: HttpBindings) {
  const response = fetch(request, bindings)
  if (!(response instanceof Promise)) return response
  return response.then(one => (isAnswered(bindings.outgoing) ? RESPONSE_ALREADY_SENT : one))
}

/** The app answers whatever goes wrong in it; this is for what goes wrong before and after. */
function unhandled(deps: ListenerDeps, error: unknown): Response {
  const isTheirs = error instanceof RequestError
  if (!isTheirs) deps.log.error('a request could not be answered', { why: errorMessage(error) })
  return refusalResponse(
    isTheirs
      ? new ApiError('invalid_request', 'This request cannot be read')
      : new ApiError('server_error', 'Something inside the service failed: try again later'),
    deps,
  )
}

/** Be it by an answer of its own, be it on the bare socket. */
const isAnswered = (response: ServerResponse) =>
  response.headersSent || response.socket?.writable === false

/** Reads what is still sent of a body that was answered already, and throws it away: a close would reset the connection. */
function readOn(request: IncomingMessage): void {
  if (!request.complete) request.removeAllListeners('data').resume()
}

function surplusFault({ socket }: IncomingMessage, { limits, traffic }: ListenerDeps) {
  if (!traffic.isSurplus(socket)) return null
  const sentence = `${limits.connectionsMax} connections are open: try again`
  return new ApiError('service_unavailable', sentence, { retryAfterS: 1 })
}

/** All requests must come by TLS, be it that it ends at a proxy. */
function plainFault(
  { socket, headers }: IncomingMessage,
  { mayBePlain }: ListenerDeps,
): ApiError | null {
  if ('encrypted' in socket || mayBePlain(ipOf(socket), protoOf(headers))) return null
  return new ApiError('ip_restricted', 'This service answers by HTTPS alone')
}

/** Of several proxies in a row the last one speaks with us; the first one wrote what the client spoke. */
function protoOf({ 'x-forwarded-proto': given }: IncomingMessage['headers']): string | null {
  const [first] = (typeof given === 'string' ? given : (given?.[0] ?? '')).split(',')
  const proto = (first ?? '').trim().toLowerCase()
  return proto === '' ? null : proto
}

/** Paths that take megabytes. */
const LISTS = /^\/(?:v1\/verify\/(?:bulk|batch|file)|lists\/new)\b/

const bodyMsOf = ({ url = '' }: IncomingMessage, { bodyMs, listBodyMs }: ServerLimits) =>
  LISTS.test(url) ? listBodyMs : bodyMs

/** Calls `onLate` when the body of a request has not arrived in time. */
function watchBody(clock: Clock, request: IncomingMessage, ms: number, onLate: () => void): void {
  if (!hasBody(request)) return
  const cancel = clock.after(ms, () => {
    if (!request.complete && !request.destroyed) onLate()
  })
  request.once('end', cancel)
  request.once('close', cancel)
}

/** RFC 9112 §6.3 */
const hasBody = ({ headers }: IncomingMessage) =>
  headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined

function late(deps: ListenerDeps, request: IncomingMessage, response: ServerResponse): void {
  if (response.headersSent) request.destroy()
  else refuse(response, deps, new ApiError('request_timeout', 'The body did not arrive in time'))
}

/** What is wrong with a request before anybody looks at what it asks for; null: nothing. */
function faultOfRequest(
  request: IncomingMessage,
  { headersMax }: Pick<ServerLimits, 'headersMax'>,
): ApiError | null {
  if (request.rawHeaders.length / 2 > headersMax) {
    return new ApiError('headers_too_large', `A request has at most ${headersMax} headers`)
  }
  const hosts = valuesOf(request, 'host')
  // RFC 9112 §3.2: none, or several, and nobody can tell whom the client meant.
  if (!isProbe(request, hosts) && (hosts.length !== 1 || !isHost(hosts[0] ?? ''))) {
    return new ApiError('invalid_request', 'A request needs one Host header with a host name')
  }
  return TARGET.test(request.url ?? '') && !/%00/.test(request.url ?? '')
    ? null
    : new ApiError('invalid_request', 'The target of a request is a path, such as /v1/jobs')
}

/** Health checks of load balancers ask so: HTTP/1.0 knows no Host. */
const isProbe = ({ httpVersion, url = '' }: IncomingMessage, hosts: readonly unknown[]) =>
  httpVersion === '1.0' && hosts.length === 0 && /^\/(?:livez|readyz)$/.test(url)

/** A name or an address as it is usually written, and perhaps a port. */
function isHost(given: string): boolean {
  const [, name = '', port = '80'] = HOST.exec(given.toLowerCase()) ?? []
  return URL.canParse(`http://${name}:${port}`) && new URL(`http://${name}`).hostname === name
}

const HOST = /^([a-z0-9._-]+|\[[0-9a-f:.]+\])(?::(\d{1,5}))?$/

/** RFC 9112 §3.2.1: a path and perhaps a query; nothing for proxies, and nothing that some software takes for a slash. */
const TARGET = /^\/(?!\/)[!#-;=?-[\]^_`a-z{|}~]*$/i

function valuesOf({ rawHeaders }: IncomingMessage, name: string): string[] {
  return rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1]?.toLowerCase() === name)
}
