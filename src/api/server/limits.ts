import { SECOND } from '../../platform/clock.ts'

/**
 * How long a client may take for each part of a request, and how much it may send. Tests use lower
 * limits.
 */
export type ServerLimits = {
  /** From the connection or the end of the previous request to the last header. */
  readonly headersMs: number
  /** Time for the body of a request. */
  readonly bodyMs: number
  /** Time for the body of a list, which can have megabytes. */
  readonly listBodyMs: number
  /**
   * A body of a megabyte or more that arrives more slowly on average, after the first `slowBodyMs`,
   * is refused.
   */
  readonly bodyBytesPerSecondMin: number
  readonly slowBodyMs: number
  /** Interval at which Node checks for late headers, which a client can exceed `headersMs` by. */
  readonly checkMs: number
  /** Idle time while something is to be sent or received. Node may wait twice as long. */
  readonly stallMs: number
  /** Idle time between requests. */
  readonly keepAliveMs: number
  /** Added to `keepAliveMs` for a request that is in transit when the time is over. */
  readonly keepAliveBufferMs: number
  readonly tlsHandshakeMs: number
  /**
   * How long input after a refusal is read and discarded; otherwise the refusal would not arrive.
   */
  readonly lingerMs: number
  readonly headersSizeMax: number
  readonly headersMax: number
  readonly requestsPerConnection: number
  readonly connectionsMax: number
  /**
   * Connections above `connectionsMax` that get a 503. Further ones are closed without a response.
   */
  readonly refusedConnectionsMax: number
  /** Time for a request on such a connection. */
  readonly refusedMs: number
}

export const SERVER_LIMITS: ServerLimits = {
  headersMs: 10 * SECOND,
  bodyMs: 30 * SECOND,
  listBodyMs: 120 * SECOND,
  // The slowest mobile connections send 16 KB a second.
  bodyBytesPerSecondMin: 8 * 1024,
  slowBodyMs: 10 * SECOND,
  checkMs: 2 * SECOND,
  stallMs: 60 * SECOND,
  keepAliveMs: 5 * SECOND,
  // The default value of Node.
  keepAliveBufferMs: SECOND,
  tlsHandshakeMs: 10 * SECOND,
  lingerMs: SECOND,
  headersSizeMax: 16 * 1024,
  headersMax: 100,
  requestsPerConnection: 1_000,
  connectionsMax: 10_000,
  refusedConnectionsMax: 2_500,
  refusedMs: SECOND,
}

/**
 * Behind a proxy: longer than proxies keep idle connections, so that the proxy closes first (nginx
 * and AWS 60 s, Traefik 90 s, Caddy 120 s, Google Cloud 600 s). A POST that is sent while the service
 * closes is a 502.
 */
export const PROXIED_KEEP_ALIVE_MS = 620 * SECOND

/**
 * File descriptors used for other things than client connections: the database, DNS queries, mail
 * servers.
 */
const OTHER_FILES = 200
const CONNECTIONS_MIN = 16

/** Share of connections that are only accepted to be refused, which takes some ms. */
const REFUSED_SHARE = 0.2

type ConnectionLimits = Pick<ServerLimits, 'connectionsMax' | 'refusedConnectionsMax'>

/** The limits that fit the maximum of open files, which is null if there is none. */
export function connectionLimits(filesMax: number | null): ConnectionLimits {
  const { connectionsMax, refusedConnectionsMax } = SERVER_LIMITS
  if (filesMax === null) return { connectionsMax, refusedConnectionsMax }
  const all = Math.max(CONNECTIONS_MIN, filesMax - OTHER_FILES)
  const refused = Math.floor(all * REFUSED_SHARE)
  return {
    connectionsMax: Math.min(all - refused, connectionsMax),
    refusedConnectionsMax: Math.min(refused, refusedConnectionsMax),
  }
}
