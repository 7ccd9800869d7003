import { EvError, errorMessage } from '../platform/error.ts'
import { sanitizeText } from '../platform/text.ts'

/** Reasons why a request has no response. */
type TransportErrorCode =
  | 'http_status'
  | 'timeout'
  | 'connection_failed'
  | 'tls_error'
  | 'dns_error'
  | 'address_not_public'
  | 'invalid_url'
  | 'invalid_response'
  | 'interrupted'
  | 'request_failed'

/** Why a request has no response: an error code, and a sentence as its message. */
export class TransportFault extends EvError {
  readonly faultCode: TransportErrorCode

  constructor(faultCode: TransportErrorCode, message: string) {
    super('io', message)
    this.faultCode = faultCode
  }
}

/** Converts any error of a request to a fault. `place` is the address dialed, if known. */
export function toFault(error: unknown, place = 'The receiver'): TransportFault {
  if (error instanceof TransportFault) return error
  if (error instanceof EvError) return new TransportFault('request_failed', error.message)
  const code = errorCode(error)
  if (code === 'UND_ERR_SOCKET') {
    const isClosed = errorMessage(error) === 'other side closed'
    const fault = isClosed ? 'connection_failed' : 'invalid_response'
    return new TransportFault(fault, `${place} ${isClosed ? CLOSED : UNEXPECTED_STATUS}`)
  }
  const found = SENTENCES.find(([codes]) => codes.test(code))
  if (found !== undefined) return new TransportFault(found[1], `${place} ${found[2]}`)
  const message = sanitizeText(errorMessage(error), MESSAGE_LENGTH_MAX)
  const sentence = `The request failed: ${message}${code === '' ? '' : ` (${code})`}.`
  return new TransportFault('request_failed', sentence)
}

const MESSAGE_LENGTH_MAX = 200

/**
 * Returns the code of an error, or its name if it has none: undici's parser sometimes sets no code.
 */
function errorCode(error: unknown): string {
  if (!(error instanceof Error)) return ''
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name
}

const CLOSED = 'closed the connection before it answered.'
/** undici closes the connection at 101, and reports it with the code of a closed connection. */
const UNEXPECTED_STATUS = 'answered with 101 (Switching Protocols), which was not requested.'

/** Messages by error codes of Node, OpenSSL, undici and its parser; the first match applies. */
const SENTENCES: readonly [codes: RegExp, fault: TransportErrorCode, message: string][] = [
  [/^ECONNREFUSED$/, 'connection_failed', 'refused the connection.'],
  [/^(ECONNRESET|EPIPE)$/, 'connection_failed', CLOSED],
  [/^ETIMEDOUT$/, 'timeout', 'did not accept the connection in time.'],
  [/^(EHOST|ENET)(UNREACH|DOWN)$|^EADDRNOTAVAIL$/, 'connection_failed', 'is unreachable.'],
  [
    /^DEPTH_ZERO_SELF_SIGNED_CERT$/,
    'tls_error',
    'has a self-signed certificate. Use one from a trusted CA.',
  ],
  [
    /^(SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_.*)$/,
    'tls_error',
    'has a certificate from an unknown CA, or does not send the intermediate certificates.',
  ],
  [/^CERT_HAS_EXPIRED$/, 'tls_error', 'has a certificate that has expired.'],
  [/^CERT_NOT_YET_VALID$/, 'tls_error', 'has a certificate that is not valid yet.'],
  [/^ERR_TLS_CERT_ALTNAME_/, 'tls_error', 'has a certificate for another name.'],
  [
    /^CERT_|_CERT_|^(INVALID_CA|HOSTNAME_MISMATCH|PATH_LENGTH_EXCEEDED)$/,
    'tls_error',
    'has an invalid certificate.',
  ],
  [
    /^ERR_SSL_(TLSV1_ALERT_PROTOCOL_VERSION|UNSUPPORTED_PROTOCOL|NO_PROTOCOLS_AVAILABLE)$/,
    'tls_error',
    'supports only outdated TLS versions. TLS 1.2 or later is required.',
  ],
  [
    /^ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST)$/,
    'tls_error',
    'does not speak TLS on this port.',
  ],
  [/^(ERR_SSL_|EPROTO)/, 'tls_error', 'failed the TLS handshake.'],
  [/^UND_ERR_HEADERS_OVERFLOW$/, 'invalid_response', 'answered with more than 16 KiB of headers.'],
  // undici's parser reports an invalid status as a failed assertion.
  [
    /^(HPE_|HTTPParserError$|UND_ERR_RES_|ERR_ASSERTION$)/,
    'invalid_response',
    'sent a response that is not valid HTTP/1.1.',
  ],
]
