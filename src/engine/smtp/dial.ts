import { connect, isIPv4, isIPv6, type NetConnectOpts, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { onAbort } from '../../platform/abort.ts'
import { EvError, errorCode } from '../../platform/error.ts'
import { parseUrl } from '../../platform/url.ts'
import type { AddressFamilies } from '../dns/route.ts'

/** Opens connections to mail servers. */
export interface Dial {
  /**
   * Dials an IP address that the caller has checked, never the host name. Rejects on failure. The
   * bytes of a `data` event may be overwritten after it.
   */
  connect(to: Target, signal: AbortSignal): Promise<Duplex>
  /** Starts TLS on an open connection (RFC 3207). Rejects if the handshake fails. */
  secure(socket: Duplex, host: string, signal: AbortSignal): Promise<Duplex>
}

export type Target = { readonly ip: string; readonly port: number; readonly host: string }

export type DialOptions = {
  /** The local address; null lets the system choose. Targets of the other family fail. */
  sourceAddress: string | null
  /** `socks5://[user:password@]host:port`, or null. */
  proxy: string | null
}

export function tcpDial(options: DialOptions): Dial {
  const proxy = options.proxy === null ? null : parseProxy(options.proxy)
  return {
    connect: (to, signal) =>
      proxy === null
        ? dialDirectly(to, options.sourceAddress, signal)
        : dialThroughProxy(proxy, to, signal),
    secure: startTls,
  }
}

type Interfaces = Readonly<
  Record<string, readonly { address: string; internal: boolean }[] | undefined>
>

/**
 * Returns which addresses can be dialed: those of the family of the source address; through a proxy,
 * both; otherwise those for which this machine has an address. IPv4 alone if it has none, so that a
 * dial reports the error.
 */
export function getDialFamilies(
  { sourceAddress, proxy }: DialOptions,
  interfaces: Interfaces,
): AddressFamilies {
  if (proxy !== null) return 'both'
  if (sourceAddress !== null) return isIPv6(sourceAddress) ? 'ipv6' : 'ipv4'
  const addresses = Object.values(interfaces)
    .flatMap(all => all ?? [])
    .filter(({ internal }) => !internal)
  if (!addresses.some(({ address }) => isGlobalIpv6(address))) return 'ipv4'
  return addresses.some(({ address }) => isRoutedIpv4(address)) ? 'both' : 'ipv6'
}

/** RFC 4291 §2.5.4 and the IANA registry: global unicast addresses are in 2000::/3. */
const isGlobalIpv6 = (address: string) => /^[23][0-9a-f]{3}:/i.test(address)
/** Whether it is an IPv4 address, private ones included, but not of the link alone (RFC 3927). */
const isRoutedIpv4 = (address: string) => isIPv4(address) && !address.startsWith('169.254.')

/**
 * Whether a dial failed at once because this machine has no route to the address: without addresses
 * of its family, or from a source address of the other one.
 */
export const hasNoRoute = (error: unknown): boolean => NO_ROUTE.has(errorCode(error))

/**
 * Whether a dial failed at once because the system has no free local port or no memory for another
 * socket. A source address that this machine does not have fails in `bind`; an IPv6 address without
 * IPv6 fails like one without a free port, so `families` tells them apart.
 */
export function isOutOfPorts(error: unknown, { ip }: Target, families: AddressFamilies): boolean {
  const code = errorCode(error)
  if (OUT_OF_PORTS.has(code)) return true
  const isConnect = (error as { readonly syscall?: unknown } | null)?.syscall === 'connect'
  return code === 'EADDRNOTAVAIL' && isConnect && (isIPv4(ip) || families !== 'ipv4')
}

/**
 * Whether a proxy reported a failure of its own, such as too many open files (RFC 1928 §6, reply 1).
 * Some proxies report an unreachable host like this too.
 */
export const isProxyFault = (error: unknown): boolean => errorCode(error) === 'EPROXYFAULT'

/** EADDRINUSE: with a source address, each connection takes a port of its own. */
const OUT_OF_PORTS: ReadonlySet<string> = new Set(['EADDRINUSE', 'ENOBUFS', 'ENOMEM'])

const NO_ROUTE: ReadonlySet<string> = new Set(['ENETUNREACH', 'EAFNOSUPPORT', 'EINVAL'])

function dialDirectly(to: Target, sourceAddress: string | null, signal: AbortSignal) {
  return new Promise<Duplex>((resolve, reject) => {
    if (signal.aborted) return reject(new Error('given up'))
    const options: NetConnectOpts = { host: to.ip, port: to.port, noDelay: true }
    if (sourceAddress !== null) options.localAddress = sourceAddress
    const socket: Socket = connect({
      ...options,
      onread: {
        buffer: READ_BUFFER,
        callback(length, buffer) {
          const bytes = buffer.subarray(0, length)
          // Without a listener the stream keeps the bytes until there is one.
          if (socket.listenerCount('data') === 0) socket.push(Buffer.from(bytes))
          else socket.emit('data', bytes)
          return true
        },
      },
    })
    const unsubscribe = onAbort(signal, () => socket.destroy(new Error('given up')))
    const onError = (error: Error) => {
      unsubscribe()
      reject(error)
    }
    socket.on('error', onError)
    socket.once('connect', () => {
      unsubscribe()
      socket.removeListener('error', onError)
      resolve(socket)
    })
    // What the connection needs next is loaded while it opens.
    nodeTls()
  })
}

let loadedTls: typeof import('node:tls') | null = null

/** Not imported: a start that dials no host takes 10 ms less without it. */
function nodeTls() {
  loadedTls ??= process.getBuiltinModule('node:tls')
  return loadedTls
}

/** All connections read into one buffer; Node would allocate 64 KB for each read. */
const READ_BUFFER = Buffer.allocUnsafeSlow(64 * 1_024)

type Proxy = { host: string; port: number; type: 5; userId?: string; password?: string }

async function dialThroughProxy(proxy: Proxy, to: Target, signal: AbortSignal): Promise<Duplex> {
  // Loaded only if a proxy is used, because the import takes 30 ms.
  const { SocksClient } = await import('socks')
  if (signal.aborted) throw new Error('given up')
  const connecting = SocksClient.createConnection({
    proxy,
    command: 'connect',
    destination: { host: to.ip, port: to.port },
  })
  const aborted = new Promise<never>((_, reject) =>
    signal.addEventListener('abort', () => reject(new Error('given up')), { once: true }),
  )
  // A connection that opens after the abort is closed, not leaked.
  connecting.then(
    ({ socket }) => signal.aborted && socket.destroy(),
    () => undefined,
  )
  try {
    const { socket } = await Promise.race([connecting, aborted])
    return socket
  } catch (error) {
    throw toProxyError(error)
  }
}

/** Why a proxy opened no connection; the last word of a rejection is that of RFC 1928 §6. */
const PROXY_FAULTS: readonly (readonly [message: RegExp, code: string])[] = [
  // This process has no descriptor or port for the connection to the proxy.
  [/^connect EMFILE\b/, 'EMFILE'],
  [/^connect ENFILE\b/, 'ENFILE'],
  [/^connect (?:EADDRINUSE|EADDRNOTAVAIL|ENOBUFS|ENOMEM)\b/, 'EADDRINUSE'],
  [/Authentication failed|no accepted authentication type/, 'EPROXYAUTH'],
  [/rejected connection - NotAllowed$/, 'EPROXYRULE'],
  [/rejected connection - Failure$/, 'EPROXYFAULT'],
  [/rejected connection - /, 'EPROXYTARGET'],
  [/^Socket closed$/, 'EPROXYCLOSED'],
  [/^(?:connect|getaddrinfo) |timed out$/, 'EPROXYDOWN'],
]

/** Gives an error of the library, which has only a message, a code. */
function toProxyError(error: unknown): Error {
  const cause = error instanceof Error ? error : new Error(String(error))
  const code = PROXY_FAULTS.find(([message]) => message.test(cause.message))?.[1]
  return code === undefined ? cause : Object.assign(new Error(cause.message, { cause }), { code })
}

function parseProxy(text: string): Proxy {
  const url = parseUrl(text)
  if (url === null || !/^socks5h?:$/.test(url.protocol) || url.hostname === '') {
    throw new EvError(
      'bad_config',
      'Invalid proxy URL. Use socks5://host:port or socks5://user:password@host:port.',
    )
  }
  const proxy: Proxy = {
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port === '' ? 1080 : Number(url.port),
    type: 5,
  }
  if (url.username !== '') {
    proxy.userId = decodeURIComponent(url.username)
    proxy.password = decodeURIComponent(url.password)
  }
  return proxy
}

/**
 * Opportunistic TLS (RFC 7435). The certificate is not checked, because no mail is sent; only the
 * handshake must succeed.
 */
function startTls(socket: Duplex, host: string, signal: AbortSignal): Promise<Duplex> {
  return new Promise((resolve, reject) => {
    // node:tls would wait forever on a closed connection.
    if (socket.destroyed || signal.aborted) return reject(new Error('closed before TLS'))
    const name = host.replace(/\.$/, '')
    const sni = /^[a-z0-9.-]+$/i.test(name) && !/^[\d.]+$/.test(name) && !isIPv6(name)
    const secure = nodeTls().connect({
      socket,
      rejectUnauthorized: false,
      ...(sni ? { servername: name } : {}),
    })
    const unsubscribe = onAbort(signal, () => secure.destroy(new Error('given up')))
    const failed = (error?: Error) => {
      unsubscribe()
      reject(error ?? new Error('closed during the TLS handshake'))
    }
    secure.once('error', failed)
    secure.once('close', failed)
    secure.once('secureConnect', () => {
      unsubscribe()
      secure.removeListener('error', failed)
      secure.removeListener('close', failed)
      resolve(secure)
    })
  })
}
