import { getRequestListener, type HttpBindings, RequestError } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import type { Clock } from '../../base/clock.ts'
import { messageOf } from '../../base/error.ts'
import type { Log } from '../../base/log.ts'
import { ApiError } from '../error/api-error.ts'
import type { ServerLimits } from './limits.ts'
import { isHttp2, type NodeRequest, type NodeResponse } from './node.ts'
import { ipOf, type RefusalParts, refusalResponse, refuse } from './refusal.ts'
import { faultOfRequest } from './target.ts'
import { keepNoLonger, type Traffic } from './traffic.ts'

export type ListenerParts = RefusalParts & {
  readonly fetch: (request: Request, bindings: HttpBindings) => Response | Promise<Response>
  readonly clock: Clock
  readonly log: Log
  readonly limits: ServerLimits
  readonly traffic: Traffic
  readonly mayBePlain: MayBePlain
}

/**
 * Whether a client may speak with us without TLS: `ip` is the address of its socket, `forwardedProto` the protocol that
 * a proxy says its client spoke (X-Forwarded-Proto), in lower case; null: it says nothing.
 */
export type MayBePlain = (ip: string, forwardedProto: string | null) => boolean

export type Listener = (request: NodeRequest, response: NodeResponse) => void

/** Hands requests to the app; what is wrong with one before that is answered here. */
export function requestListener(parts: ListenerParts): Listener {
  const { clock, limits, traffic } = parts
  const hand = getRequestListener(
    (request, bindings) => whenOpen(parts, request, bindings as HttpBindings),
    // HTTP/1.0 needs no Host.
    { errorHandler: error => unhandled(parts, error), hostname: 'localhost' },
  )
  // Sockets of HTTP/1.1 that close with an answer under way: what else was sent on them is not heard.
  const ending = new WeakSet<object>()
  return (request, response) => {
    const { socket } = request
    if (ending.has(socket)) return
    response.on('error', () => {}) // The client has left; what the answer is made of hears of it by `close`.
    const count = traffic.begin(request, response)
    const fault = plainFault(request, parts) ?? faultOfRequest(request, limits)
    if (!isHttp2(request) && (fault !== null || count >= limits.requestsPerConnection)) {
      ending.add(socket)
    }
    if (count >= limits.requestsPerConnection) lastOne(request, response)
    if (fault !== null) return refuse(response, parts, fault)
    watchStall(request, response, limits.stallMs)
    watchBody(clock, request, bodyMsOf(request, limits), () => late(parts, request, response))
    void hand(request as never, response as never)
  }
}

/** What was answered here meanwhile, as its body came too late, the app need not answer. */
function whenOpen({ fetch }: ListenerParts, request: Request, bindings: HttpBindings) {
  const response = fetch(request, bindings)
  if (!(response instanceof Promise)) return response
  return response.then(one => (isAnswered(bindings.outgoing) ? RESPONSE_ALREADY_SENT : one))
}

/** The app answers whatever goes wrong in it; this is for what goes wrong before and after. */
function unhandled(parts: ListenerParts, error: unknown): Response {
  const isTheirs = error instanceof RequestError
  if (!isTheirs) parts.log.error('a request could not be answered', { why: messageOf(error) })
  return refusalResponse(
    isTheirs
      ? new ApiError('invalid_request', 'This request cannot be read')
      : new ApiError('server_error', 'Something inside the service failed: try again later'),
    parts,
  )
}

/** Be it by an answer of its own, be it on the bare socket. Of HTTP/2 a stream that was asked for by HEAD cannot be written from its start. */
const isAnswered = (response: NodeResponse) =>
  response.headersSent ||
  ('stream' in response ? response.stream.destroyed : response.socket?.writable === false)

function lastOne(request: NodeRequest, response: NodeResponse): void {
  if (isHttp2(request)) request.stream.session?.close()
  else keepNoLonger(response)
}

/** All requests must come by TLS, be it that it ends at a proxy. */
function plainFault(
  { socket, headers }: NodeRequest,
  { mayBePlain }: ListenerParts,
): ApiError | null {
  if ('encrypted' in socket || mayBePlain(ipOf(socket), protoOf(headers))) return null
  return new ApiError('ip_restricted', 'This service answers by HTTPS alone')
}

/** Of several proxies in a row the last one speaks with us; the first one wrote what the client spoke. */
function protoOf({ 'x-forwarded-proto': given }: NodeRequest['headers']): string | null {
  const [first] = (typeof given === 'string' ? given : (given?.[0] ?? '')).split(',')
  const proto = (first ?? '').trim().toLowerCase()
  return proto === '' ? null : proto
}

/** Paths that take megabytes. */
const LISTS = /^\/(?:v1\/verify\/(?:bulk|batch|file)|lists\/new)\b/

const bodyMsOf = ({ url = '' }: NodeRequest, { bodyMs, listBodyMs }: ServerLimits) =>
  LISTS.test(url) ? listBodyMs : bodyMs

/** Calls `onLate` when the body of a request has not arrived in time. */
function watchBody(clock: Clock, request: NodeRequest, ms: number, onLate: () => void): void {
  if (!hasBody(request)) return
  const cancel = clock.after(ms, () => {
    if (!request.complete && !request.destroyed) onLate()
  })
  request.once('end', cancel)
  request.once('close', cancel)
}

const hasBody = (request: NodeRequest) =>
  isHttp2(request)
    ? !request.stream.endAfterHeaders
    : request.headers['content-length'] !== undefined ||
      request.headers['transfer-encoding'] !== undefined

function late(parts: ListenerParts, request: NodeRequest, response: NodeResponse): void {
  if (response.headersSent) request.destroy()
  else refuse(response, parts, new ApiError('request_timeout', 'The body did not arrive in time'))
}

/** HTTP/2: an answer that its reader does not take is given up. Over HTTP/1.1 the connection has such a timer. */
function watchStall(request: NodeRequest, response: NodeResponse, ms: number): void {
  if (!isHttp2(request)) return
  const { stream } = request
  const look = () => {
    // Somebody works on an answer, for instance a wait for a job: that has an end of its own.
    if (!response.headersSent) stream.setTimeout(ms, look)
    else stream.close(NGHTTP2_CANCEL)
  }
  stream.setTimeout(ms, look)
}

/** RFC 9113 §7 */
const NGHTTP2_CANCEL = 8
