import { SECOND } from '../../platform/clock.ts'

/** How long a client may take for each part of a request, and how much it may send; tests have shorter ones. */
export type ServerLimits = {
  /** From the connection, or the end of the request before, to the last header. */
  readonly headersMs: number
  /** For the body of a request. */
  readonly bodyMs: number
  /** For the body of a list, which may have megabytes. */
  readonly listBodyMs: number
  /** Node looks at headers that take too long this often: a client may have so much more time. */
  readonly checkMs: number
  /** Without one byte in either direction while something is to be sent or received. Node may take it twice. */
  readonly stallMs: number
  /** An open connection without a request. */
  readonly keepAliveMs: number
  /** After `keepAliveMs`, for a request that is on its way when the time is up. */
  readonly keepAliveBufferMs: number
  readonly tlsHandshakeMs: number
  /** What is sent after a refusal is read and thrown away for so long, or the refusal would not arrive. */
  readonly lingerMs: number
  readonly headersSizeMax: number
  readonly headersMax: number
  readonly requestsPerConnection: number
  readonly connectionsMax: number
  /** Connections above `connectionsMax` that are told 503; one above these is closed without a word. */
  readonly refusedConnectionsMax: number
  /** For a request on such a connection. */
  readonly refusedMs: number
}

export const SERVER_LIMITS: ServerLimits = {
  headersMs: 10 * SECOND,
  bodyMs: 30 * SECOND,
  listBodyMs: 120 * SECOND,
  checkMs: 2 * SECOND,
  stallMs: 60 * SECOND,
  keepAliveMs: 5 * SECOND,
  // Node's own default.
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

/** Behind a proxy: longer than the proxies' own 60 s, so that it is they who close. */
export const PROXIED_KEEP_ALIVE_MS = 65 * SECOND

/** Files that the process has open beside connections of clients: the database, DNS questions, mail servers. */
const OTHER_FILES = 200
const CONNECTIONS_MIN = 16

/** One in five connections is there to be refused: it lasts some ms. */
const REFUSED_SHARE = 0.2

type ConnectionLimits = Pick<ServerLimits, 'connectionsMax' | 'refusedConnectionsMax'>

/** As many as files may be open, but for our own. Null: nothing limits them. */
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
