import { EvError, messageOf } from '../../base/error.ts'
import { cleanText } from '../../base/text.ts'

/** Why there is no answer, in a sentence. `place` is what was dialled, where it is known. */
export function faultOf(error: unknown, place = 'The receiver'): string {
  if (error instanceof EvError) return error.message
  const code = codeOf(error)
  if (code === 'UND_ERR_SOCKET') return `${place} ${saysOfUndici(messageOf(error))}`
  const [, says] = SENTENCES.find(([codes]) => codes.test(code)) ?? []
  if (says !== undefined) return `${place} ${says}`
  const message = cleanText(messageOf(error), MESSAGE_LENGTH_MAX)
  return `The request failed: ${message}${code === '' ? '' : ` (${code})`}.`
}

const MESSAGE_LENGTH_MAX = 200

/** The name of the error where it has no code, as undici's parser leaves it out at times. */
function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return ''
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name
}

/** undici has one code for both: it hangs up at 100 and 101, as nothing of ours asks for them. */
const saysOfUndici = (message: string) =>
  message === 'other side closed' ? CLOSED : 'answered with 100 or 101, which nobody asked for.'

const CLOSED = 'closed the connection before it answered.'

/** By the codes of Node, OpenSSL, undici and its parser; the first that fits. */
const SENTENCES: readonly [codes: RegExp, says: string][] = [
  [/^ECONNREFUSED$/, 'refused the connection.'],
  [/^(ECONNRESET|EPIPE)$/, CLOSED],
  [/^ETIMEDOUT$/, 'did not take the connection in time.'],
  [/^(EHOST|ENET)(UNREACH|DOWN)$|^EADDRNOTAVAIL$/, 'cannot be reached from here.'],
  [
    /^DEPTH_ZERO_SELF_SIGNED_CERT$/,
    'has a self-signed certificate: it needs one of a known authority.',
  ],
  [
    /^(SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_.*)$/,
    'has a certificate of an authority that is not known, or does not send the whole chain.',
  ],
  [/^CERT_HAS_EXPIRED$/, 'has a certificate that has expired.'],
  [/^CERT_NOT_YET_VALID$/, 'has a certificate that is not valid yet.'],
  [/^ERR_TLS_CERT_ALTNAME_/, 'has a certificate of another name.'],
  [
    /^CERT_|_CERT_|^(INVALID_CA|HOSTNAME_MISMATCH|PATH_LENGTH_EXCEEDED)$/,
    'has a certificate that is not valid.',
  ],
  [
    /^ERR_SSL_(TLSV1_ALERT_PROTOCOL_VERSION|UNSUPPORTED_PROTOCOL|NO_PROTOCOLS_AVAILABLE)$/,
    'speaks only versions of TLS that are too old: at least TLS 1.2 is needed.',
  ],
  [
    /^ERR_SSL_(WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST)$/,
    'does not speak TLS on this port.',
  ],
  [/^(ERR_SSL_|EPROTO)/, 'and ev could not agree on TLS.'],
  [/^UND_ERR_HEADERS_OVERFLOW$/, 'answered with more than 16 KiB of headers.'],
  // undici's parser asserts what a status is.
  [/^(HPE_|HTTPParserError$|UND_ERR_RES_|ERR_ASSERTION$)/, 'gave an answer that is not HTTP/1.1.'],
]
