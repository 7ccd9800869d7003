import { type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { type Clock, yieldToEventLoop } from '../../platform/clock.ts'
import { plainIp } from '../../platform/ip.ts'
import type { Random } from '../../platform/random.ts'
import { type ApiCode, ApiError, STATUS } from '../errors/api-error.ts'
import { errorBody } from '../errors/errors.ts'
import type { ServerLimits } from './limits.ts'

/** What an answer needs that comes about without the app. */
export type RefusalDeps = {
  readonly clock: Clock
  readonly random: Random
  /** Headers that every answer has, for a client of that address: how its limit stands, and what keeps browsers safe. */
  readonly headers: (ip: string) => Readonly<Record<string, string>>
  readonly limits: Pick<ServerLimits, 'lingerMs'>
}

/** Answers a request that the app does not, as the app would. */
export function refuse(response: ServerResponse, deps: RefusalDeps, error: ApiError): void {
  const { socket } = response.req
  if (!response.req.complete && isNext(response)) {
    // Node would close at once, and what the client still sends would undo the answer on its way.
    response.req.resume()
    closeWith(error, socket, deps)
    return
  }
  response.setHeader('connection', 'close')
  answer(response, deps, error)
}

/** The same where the connection is good for the next request. */
export function answer(response: ServerResponse, deps: RefusalDeps, error: ApiError): void {
  const { headers, body } = answerOf(error, deps, ipOf(response.req.socket))
  response.writeHead(STATUS[error.code], headers)
  response.end(body)
}

/** Whether no answer to an earlier request is under way. */
const isNext = (response: ServerResponse) => response.socket !== null

/** Answers on a bare socket, which is closed once the answer had time to arrive. */
export function closeWith(error: ApiError, socket: Socket, deps: RefusalDeps): void {
  const { headers, body } = answerOf(error, deps, ipOf(socket))
  const status = STATUS[error.code]
  const lines = Object.entries({ ...headers, connection: 'close' }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  )
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`)
  // Node runs timers before it reads: what came meanwhile is read first, or the close would reset the connection.
  const close = () => void yieldToEventLoop().then(() => socket.destroy())
  const cancel = deps.clock.after(deps.limits.lingerMs, close)
  socket.once('close', cancel)
}

/** The same where nobody knows who asked. */
export function refusalResponse(error: ApiError, deps: RefusalDeps): Response {
  const { headers, body } = answerOf(error, deps, UNKNOWN_CALLER)
  return new Response(body, { status: STATUS[error.code], headers })
}

/** What Node found wrong in what was sent, as we say it; null: nobody is there to be told. */
export function faultOfParser({ code = '' }: NodeJS.ErrnoException): ApiError | null {
  if (code in PARSER_FAULTS) {
    const [ours, message] = PARSER_FAULTS[code] as [ApiCode, string]
    return new ApiError(ours, message)
  }
  return code.startsWith('HPE_') ? new ApiError('invalid_request', 'This is no HTTP request') : null
}

const PARSER_FAULTS: Readonly<Record<string, [ApiCode, string]>> = {
  HPE_HEADER_OVERFLOW: ['headers_too_large', 'The headers are too large'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: ['payload_too_large', 'The extensions of a chunk are too large'],
  ERR_HTTP_REQUEST_TIMEOUT: ['request_timeout', 'The request did not arrive in time'],
}

function answerOf(error: ApiError, { random, headers }: RefusalDeps, ip: string) {
  const requestId = `req_${random.token(ID_LENGTH)}`
  const body = JSON.stringify(errorBody(error.code, error.message, requestId))
  const own = {
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    'x-request-id': requestId,
    ...(error.retryAfterS !== null && { 'retry-after': String(error.retryAfterS) }),
  }
  return { headers: { ...headers(ip), ...own }, body }
}

const ID_LENGTH = 20

export const ipOf = (socket: { readonly remoteAddress?: string | undefined } | undefined): string =>
  plainIp(socket?.remoteAddress ?? '') ?? UNKNOWN_CALLER

/** A socket that was closed meanwhile has no address any more. */
const UNKNOWN_CALLER = '0.0.0.0'
