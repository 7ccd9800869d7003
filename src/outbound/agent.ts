import type { Readable } from 'node:stream'
import type { Agent } from 'undici'
import type { Dial } from './policy-dial.ts'
import { TransportFault } from './transport-error.ts'

type AgentOptions = {
  readonly dial: (to: URL) => ReturnType<Dial>
  /** How long an idle connection is kept. */
  readonly idleMs: number
  /** Requests after which the host is resolved and checked again. */
  readonly requestsPerConnection: number
  /** Limit for all responses of a connection; Infinity: none. */
  readonly connectionBytesMax: number
}

/**
 * Opens an HTTP client that connects only with `dial`. It follows no redirects, and its callers have
 * deadlines. undici is loaded with the first one: it would add 85 ms to every start.
 */
export async function openAgent(options: AgentOptions): Promise<Agent> {
  const { dial, idleMs, requestsPerConnection, connectionBytesMax } = options
  const { Agent } = await import('undici')
  return new Agent({
    connect: ({ protocol, host }, callback) =>
      dial(new URL(`${protocol}//${host}`)).then(
        socket => {
          limitBodyRead(socket, connectionBytesMax)
          callback(null, socket)
        },
        (error: Error) => callback(error, null),
      ),
    allowH2: false,
    pipelining: 1,
    keepAliveTimeout: idleMs,
    keepAliveMaxTimeout: idleMs,
    maxRequestsPerClient: requestsPerConnection,
    maxHeaderSize: HEADER_BYTES_MAX,
    headersTimeout: 0,
    bodyTimeout: 0,
  })
}

/** Same limit as in Node. */
export const HEADER_BYTES_MAX = 16 * 1_024

/**
 * Closes a connection that sent more than `bytesMax`. The limits of headers and bodies leave gaps
 * in which a server can send data until the deadline, all of it parsed: informational responses,
 * chunk extensions, blank lines.
 */
function limitBodyRead(socket: Connection, bytesMax: number): void {
  socket.on('readable', () => {
    if (socket.bytesRead > bytesMax)
      socket.destroy(new TransportFault('invalid_response', TOO_MUCH_DATA))
  })
}

type Connection = Readable & { readonly bytesRead: number }

const TOO_MUCH_DATA = 'The server sent too much data.'
