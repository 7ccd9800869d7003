import { type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { type Clock, yieldToEventLoop } from '../../platform/clock.ts'
import { plainIp } from '../../platform/ip.ts'
import type { Random } from '../../platform/random.ts'
import { type ApiError, STATUS } from '../errors/api-error.ts'
import { errorBody } from '../errors/errors.ts'
import { requestError } from '../errors/request-errors.ts'
import type { ServerLimits } from './limits.ts'

/** Dependencies of responses that bypass the app. */
export type RefusalDeps = {
  readonly clock: Clock
  readonly random: Random
  /** Headers of every response to a client IP address: its rate limit and the security headers. */
  readonly headers: (ip: string) => Readonly<Record<string, string>>
  readonly limits: Pick<ServerLimits, 'lingerMs'>
}

/** Refuses a request without the app, in the same form, and closes the connection. */
export function refuse(response: ServerResponse, deps: RefusalDeps, error: ApiError): void {
  const { socket } = response.req
  if (!response.req.complete && isNext(response)) {
    // Node would close at once, and a reset by input in transit could discard the response.
    response.req.resume()
    sendErrorAndClose(error, socket, deps)
    return
  }
  response.setHeader('connection', 'close')
  sendError(response, deps, error)
}

/** Sends an error without the app and keeps the connection open. */
export function sendError(response: ServerResponse, deps: RefusalDeps, error: ApiError): void {
  const { headers, body } = buildResponse(error, deps, socketIp(response.req.socket))
  response.writeHead(STATUS[error.code], headers)
  response.end(body)
}

/** Whether no response to an earlier request is in flight. */
const isNext = (response: ServerResponse) => response.socket !== null

/** Sends an error on a bare socket, which is closed once the response had time to arrive. */
export function sendErrorAndClose(error: ApiError, socket: Socket, deps: RefusalDeps): void {
  const { headers, body } = buildResponse(error, deps, socketIp(socket))
  const status = STATUS[error.code]
  const lines = Object.entries({ ...headers, connection: 'close' }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  )
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`)
  // Node runs timers before it reads: pending input must be read first, or closing would reset the
  // connection.
  const close = () => void yieldToEventLoop().then(() => socket.destroy())
  const cancel = deps.clock.after(deps.limits.lingerMs, close)
  socket.once('close', cancel)
}

/** Builds an error response for an unknown client. */
export function refusalResponse(error: ApiError, deps: RefusalDeps): Response {
  const { headers, body } = buildResponse(error, deps, UNKNOWN_CALLER)
  return new Response(body, { status: STATUS[error.code], headers })
}

/** Builds the response of a service that has no app yet. */
export const startingResponse = (deps: RefusalDeps): Response =>
  refusalResponse(requestError('service_starting'), deps)

/** Converts an error of Node's parser; null if the client is gone. */
export function fromParserError({ code = '' }: NodeJS.ErrnoException): ApiError | null {
  const reason = PARSER_ERRORS[code]
  if (reason !== undefined) return requestError(reason)
  return code.startsWith('HPE_') ? requestError('request_not_http') : null
}

const PARSER_ERRORS: Readonly<
  Record<string, 'headers_too_large' | 'chunk_extensions_too_large' | 'request_late'>
> = {
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 'chunk_extensions_too_large',
  ERR_HTTP_REQUEST_TIMEOUT: 'request_late',
}

function buildResponse(error: ApiError, { random, headers }: RefusalDeps, ip: string) {
  const requestId = `req_${random.token(ID_LENGTH)}`
  const body = JSON.stringify(errorBody(error, requestId))
  const own = {
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    'x-request-id': requestId,
    ...(error.retryAfterS !== null && { 'retry-after': String(error.retryAfterS) }),
  }
  return { headers: { ...headers(ip), ...own }, body }
}

const ID_LENGTH = 20

export const socketIp = (
  socket: { readonly remoteAddress?: string | undefined } | undefined,
): string => plainIp(socket?.remoteAddress ?? '') ?? UNKNOWN_CALLER

/** Stands for a socket that was closed, which has no address. */
const UNKNOWN_CALLER = '0.0.0.0'
