import { EvError, errorMessage } from '../../platform/error.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { DeliveryError } from '../endpoint.ts'

/** Why a request to a webhook has no answer: a code for programs, and a sentence as its message. */
export class TransportFault extends EvError {
  readonly faultCode: DeliveryError

  constructor(faultCode: DeliveryError, message: string) {
    super('io', message)
    this.faultCode = faultCode
  }
}

/** Any error of a request, as a fault. `place` is what was dialled, where it is known. */
export function toFault(error: unknown, place = 'The receiver'): TransportFault {
  if (error instanceof TransportFault) return error
  if (error instanceof EvError) return new TransportFault('request_failed', error.message)
  const code = codeOf(error)
  if (code === 'UND_ERR_SOCKET') {
    const isClosed = errorMessage(error) === 'other side closed'
    const fault = isClosed ? 'connection_failed' : 'invalid_response'
    return new TransportFault(fault, `${place} ${isClosed ? CLOSED : UNASKED}`)
  }
  const found = SENTENCES.find(([codes]) => codes.test(code))
  if (found !== undefined) return new TransportFault(found[1], `${place} ${found[2]}`)
  const message = sanitizeText(errorMessage(error), MESSAGE_LENGTH_MAX)
  const sentence = `The request failed: ${message}${code === '' ? '' : ` (${code})`}.`
  return new TransportFault('request_failed', sentence)
}

const MESSAGE_LENGTH_MAX = 200

/** The name of the error where it has no code, as undici's parser leaves it out at times. */
function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return ''
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name
}

const CLOSED = 'closed the connection before it answered.'
/** undici has one code for this and for a connection that was closed: it hangs up at 100 and 101. */
const UNASKED = 'answered with 100 or 101, which nobody asked for.'

/** By the codes of Node, OpenSSL, undici and its parser; the first that fits. */
const SENTENCES: readonly [codes: RegExp, fault: DeliveryError, says: string][] = [
  [/^ECONNREFUSED$/, 'connection_failed', 'refused the connection.'],
  [/^(ECONNRESET|EPIPE)$/, 'connection_failed', CLOSED],
  [/^ETIMEDOUT$/, 'timeout', 'did not take the connection in time.'],
  [
    /^(EHOST|ENET)(UNREACH|DOWN)$|^EADDRNOTAVAIL$/,
    'connection_failed',
    'cannot be reached from here.',
  ],
  [
    /^DEPTH_ZERO_SELF_SIGNED_CERT$/,
    'tls_error',
    'has a self-signed certificate: it needs one of a known authority.',
  ],
  [
    /^(SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_.*)$/,
    'tls_error',
    'has a certificate of an authority that is not known, or does not send the whole chain.',
  ],
  [/^CERT_HAS_EXPIRED$/, 'tls_error', 'has a certificate that has expired.'],
  [/^CERT_NOT_YET_VALID$/, 'tls_error', 'has a certificate that is not valid yet.'],
  [/^ERR_TLS_CERT_ALTNAME_/, 'tls_error', 'has a certificate of another name.'],
  [
    /^CERT_|_CERT_|^(INVALID_CA|HOSTNAME_MISMATCH|PATH_LENGTH_EXCEEDED)$/,
    'tls_error',
    'has a certificate that is not valid.',
  ],
  [
    /^ERR_SSL_(TLSV1_ALERT_PROTOCOL_VERSION|UNSUPPORTED_PROTOCOL|NO_PROTOCOLS_AVAILABLE)$/,
    'tls_error',
    'speaks only versions of TLS that are too old: at least TLS 1.2 is needed.',
  ],
  [
    /^ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST)$/,
    'tls_error',
    'does not speak TLS on this port.',
  ],
  [/^(ERR_SSL_|EPROTO)/, 'tls_error', 'and ev could not agree on TLS.'],
  [/^UND_ERR_HEADERS_OVERFLOW$/, 'invalid_response', 'answered with more than 16 KiB of headers.'],
  // undici's parser asserts what a status is.
  [
    /^(HPE_|HTTPParserError$|UND_ERR_RES_|ERR_ASSERTION$)/,
    'invalid_response',
    'gave an answer that is not HTTP/1.1.',
  ],
]
