/** Faults of the caller or of ev. Replies of DNS and mail servers are results, not errors. */
export type ErrorCode =
  | 'usage'
  | 'bad_address'
  | 'bad_input'
  | 'no_input'
  | 'cannot_write'
  | 'io'
  | 'bad_config'
  | 'interrupted'
  | 'internal'

/** The error class of ev: a closed `code`, a message for people, and the `cause`. */
export class EvError extends Error {
  override readonly name = 'EvError'
  readonly code: ErrorCode

  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.code = code
  }
}

/** Returns the code of any thrown value, such as `ECONNREFUSED`; '' if it has none. */
export const errorCode = (thrown: unknown): string =>
  String((thrown as { readonly code?: unknown } | null | undefined)?.code ?? '')

/**
 * Removes what Node adds to the message of a failed file operation: `ENOENT: no such file or
 * directory, open 'list.csv'` becomes `no such file or directory`.
 */
const withoutFileCode = (message: string) =>
  message.replace(/^E[A-Z0-9]+: ([^,]+), [a-z]+( '.*')?$/s, '$1')

/** Texts for the error codes of failed connections: the messages of Node have only the code. */
const NETWORK_FAULTS: Readonly<Record<string, string>> = {
  EAI_AGAIN: 'DNS lookup failed',
  ECONNREFUSED: 'connection refused',
  ECONNRESET: 'connection reset',
  EHOSTUNREACH: 'no route to the host',
  ENETUNREACH: 'network unreachable',
  ENOTFOUND: 'host not found',
  EPIPE: 'connection closed',
  ETIMEDOUT: 'connection timed out',
}

/** `connect ECONNREFUSED 127.0.0.1:25` becomes `connection refused (127.0.0.1:25)`. */
function withoutNetworkCode(message: string): string {
  const [, code = '', where] =
    /^[a-z]+ (E[A-Z_]+)(?: ([^ ]+))?(?: - Local .*)?$/.exec(message) ?? []
  const fault = NETWORK_FAULTS[code]
  if (fault === undefined) return message
  return where === undefined ? fault : `${fault} (${where})`
}

/** Returns the library and the reason of an OpenSSL error: `PEM routines: no start line`. */
const withoutOpenSslCode = (message: string) =>
  message.replace(/^(?:[0-9A-F]+:)?error:[0-9A-F]+:([^:]+):[^:]*:([^:\n]+)(?:[:\n].*)?$/s, '$1: $2')

/**
 * Whether an error is one of the file system, such as ENOSPC or EIO. Errors of zlib start with `Z_`;
 * errors of data have other codes, or no code.
 */
export const isFileError = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && /^E[A-Z]+$/.test(String(error.code))

/**
 * Returns a message for any thrown value. Libraries also throw plain objects with a message, and
 * errors with only a code, such as the AggregateError of several refused connections.
 */
export function errorMessage(thrown: unknown): string {
  if (typeof thrown !== 'object' || thrown === null) return String(thrown)
  const { message, code } = thrown as { readonly message?: unknown; readonly code?: unknown }
  if (typeof message === 'string' && message !== '')
    return withoutOpenSslCode(withoutNetworkCode(withoutFileCode(message)))
  if (typeof code === 'string') return NETWORK_FAULTS[code] ?? code
  return thrown instanceof Error ? thrown.message : String(thrown)
}
