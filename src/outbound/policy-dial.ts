import { connect, type Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { createSecureContext, getCACertificates, connect as tlsConnect } from 'node:tls'
import type { Agent } from 'undici'
import { type Clock, SECOND } from '../platform/clock.ts'
import { skipContinue } from './continue-filter.ts'
import { TransportFault, toFault } from './transport-error.ts'
import { checkedAddresses, hostName, ipLiteral, type UrlPolicy } from './url-policy.ts'

export type DialOptions = UrlPolicy & {
  readonly clock: Clock
  /** PEM of CAs that are trusted in addition to the default ones. */
  readonly ca?: string
}

/** Dials the host of a URL. Rejects with a TransportFault that says why it failed. */
export type Dial = (to: URL, signal: AbortSignal) => Promise<Socket>

/** Time to connect to one address, including the TLS handshake; then the next one is tried. */
export const CONNECT_TIMEOUT_MS = 10 * SECOND
/** A name may have any number of addresses. */
const ADDRESSES_MAX = 4

/**
 * Dials the checked addresses of a host in order. There is no second DNS query, so a name cannot
 * change its address after the check (DNS rebinding).
 */
export function policyCheckedDial({ clock, ca, ...urlPolicy }: DialOptions): Dial {
  let context: SecureContext | undefined
  return async (to, signal) => {
    const checked = await checkedAddresses(to.hostname, urlPolicy, signal)
    if ('fault' in checked) throw new TransportFault(checked.code, checked.fault)
    if (to.protocol !== 'http:') context ??= createContext(ca)
    let fault = new TransportFault('dns_error', 'It has no address.')
    for (const ip of checked.addresses.slice(0, ADDRESSES_MAX)) {
      if (signal.aborted) throw signal.reason
      const dialled = await dialOne({ ip, to, context, clock, signal })
      if (!(dialled instanceof TransportFault)) return dialled
      fault = dialled
    }
    throw fault
  }
}

type SecureContext = ReturnType<typeof createSecureContext>

/**
 * Created once, with the first HTTPS connection, because reading the default CAs takes a while. They
 * include those of NODE_EXTRA_CA_CERTS.
 */
const createContext = (ca: string | undefined) =>
  createSecureContext({
    minVersion: 'TLSv1.2',
    ...(ca === undefined ? {} : { ca: [...getCACertificates('default'), ca] }),
  })

type DialTarget = {
  readonly ip: string
  readonly to: URL
  /** Undefined for plain HTTP. */
  readonly context: SecureContext | undefined
  readonly clock: Clock
  readonly signal: AbortSignal
}

/** Dials one address. Resolves to a fault if it fails. */
function dialOne({ ip, to, context, clock, signal }: DialTarget): Promise<Socket | TransportFault> {
  const { promise, resolve } = Promise.withResolvers<Socket | TransportFault>()
  const port = to.port === '' ? HTTPS_PORT : Number(to.port)
  const isPlain = to.protocol === 'http:'
  const socket = isPlain
    ? connect({ host: ip, port })
    : tlsConnect({
        host: ip,
        port,
        secureContext: context,
        // Set explicitly, because NODE_TLS_REJECT_UNAUTHORIZED changes the default.
        rejectUnauthorized: true,
        ALPNProtocols: ['http/1.1'],
        // RFC 6066 §3: an IP address is not sent as server name; the certificate is checked against
        // the address.
        ...(ipLiteral(to.hostname) === null ? { servername: hostName(to.hostname) } : {}),
      })
  const address = `${ip} port ${port}`
  const destroySocket = () =>
    socket.destroy(
      new TransportFault('timeout', `${address} did not accept the connection in time.`),
    )
  const cancel = clock.after(CONNECT_TIMEOUT_MS, destroySocket)
  signal.addEventListener('abort', destroySocket)
  const finish = (outcome: Socket | TransportFault) => {
    cancel()
    signal.removeEventListener('abort', destroySocket)
    resolve(outcome)
  }
  socket.setNoDelay(true)
  // The listener stays: without one a later error would be thrown. Only the first one has an
  // effect; the user of the socket has a listener too.
  socket.on('error', error => finish(toFault(error, address)))
  socket.once(isPlain ? 'connect' : 'secureConnect', () => finish(socket))
  return promise
}

const HTTPS_PORT = 443

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
          skipContinue(socket, HEADER_BYTES_MAX)
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
