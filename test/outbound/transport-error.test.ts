import { expect, test } from 'vitest'
import { TransportFault, toFault } from '../../src/outbound/transport-error.ts'
import { EvError } from '../../src/platform/error.ts'

const error = (code: string, message = 'm') => Object.assign(new Error(message), { code })

test.each([
  ['ECONNREFUSED', 'X refused the connection.', 'connection_failed'],
  ['ECONNRESET', 'X closed the connection before it answered.', 'connection_failed'],
  ['EPIPE', 'X closed the connection before it answered.', 'connection_failed'],
  ['ETIMEDOUT', 'X did not accept the connection in time.', 'timeout'],
  ['EHOSTUNREACH', 'X is unreachable.', 'connection_failed'],
  ['ENETUNREACH', 'X is unreachable.', 'connection_failed'],
  ['EADDRNOTAVAIL', 'X is unreachable.', 'connection_failed'],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', expect.stringMatching(/^X .* unknown CA/), 'tls_error'],
  ['SELF_SIGNED_CERT_IN_CHAIN', expect.stringMatching(/^X .* unknown CA/), 'tls_error'],
  ['CERT_REVOKED', 'X has an invalid certificate.', 'tls_error'],
  ['ERROR_IN_CERT_NOT_AFTER_FIELD', 'X has an invalid certificate.', 'tls_error'],
  ['ERR_TLS_CERT_ALTNAME_FORMAT', 'X has a certificate for another name.', 'tls_error'],
  ['ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL', 'X failed the TLS handshake.', 'tls_error'],
  ['ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE', 'X failed the TLS handshake.', 'tls_error'],
  ['UND_ERR_HEADERS_OVERFLOW', 'X answered with more than 16 KiB of headers.', 'invalid_response'],
  ['HPE_INVALID_CONSTANT', 'X sent a response that is not valid HTTP/1.1.', 'invalid_response'],
  ['ERR_ASSERTION', 'X sent a response that is not valid HTTP/1.1.', 'invalid_response'],
  [
    'UND_ERR_RES_CONTENT_LENGTH_MISMATCH',
    'X sent a response that is not valid HTTP/1.1.',
    'invalid_response',
  ],
])('%s has a message and a code', (code, says, faultCode) => {
  expect(toFault(error(code), 'X')).toMatchObject({ message: says, faultCode })
})

test('an unknown error keeps its message, sanitized and truncated', () => {
  expect(toFault(error('EODD', 'a\nb\x1b')).message).toBe('The request failed: a b\uFFFD (EODD).')
  expect(toFault(new TypeError('x'.repeat(500))).message).toMatch(
    /^The request failed: x{199}… \(TypeError\)\.$/,
  )
  expect(toFault('text')).toMatchObject({
    message: 'The request failed: text.',
    faultCode: 'request_failed',
  })
})

test('messages of ev are unchanged', () => {
  expect(toFault(new EvError('io', 'No answer came.'), 'X').message).toBe('No answer came.')
  const fault = new TransportFault('timeout', 'No answer came.')
  expect(toFault(fault, 'X')).toBe(fault)
})
