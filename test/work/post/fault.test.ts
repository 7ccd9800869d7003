import { expect, test } from 'vitest'
import { EvError } from '../../../src/base/error.ts'
import { faultOf } from '../../../src/work/post/fault.ts'

const error = (code: string, message = 'm') => Object.assign(new Error(message), { code })

test.each([
  ['ECONNREFUSED', 'X refused the connection.'],
  ['ECONNRESET', 'X closed the connection before it answered.'],
  ['EPIPE', 'X closed the connection before it answered.'],
  ['ETIMEDOUT', 'X did not take the connection in time.'],
  ['EHOSTUNREACH', 'X cannot be reached from here.'],
  ['ENETUNREACH', 'X cannot be reached from here.'],
  ['EADDRNOTAVAIL', 'X cannot be reached from here.'],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', expect.stringMatching(/^X .* authority that is not known/)],
  ['SELF_SIGNED_CERT_IN_CHAIN', expect.stringMatching(/^X .* authority that is not known/)],
  ['CERT_REVOKED', 'X has a certificate that is not valid.'],
  ['ERROR_IN_CERT_NOT_AFTER_FIELD', 'X has a certificate that is not valid.'],
  ['ERR_TLS_CERT_ALTNAME_FORMAT', 'X has a certificate of another name.'],
  ['ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL', 'X and ev could not agree on TLS.'],
  ['ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE', 'X and ev could not agree on TLS.'],
  ['UND_ERR_HEADERS_OVERFLOW', 'X answered with more than 16 KiB of headers.'],
  ['HPE_INVALID_CONSTANT', 'X gave an answer that is not HTTP/1.1.'],
  ['ERR_ASSERTION', 'X gave an answer that is not HTTP/1.1.'],
  ['UND_ERR_RES_CONTENT_LENGTH_MISMATCH', 'X gave an answer that is not HTTP/1.1.'],
])('%s is told in a sentence', (code, says) => {
  expect(faultOf(error(code), 'X')).toEqual(says)
})

test('what has no sentence is told as it is, cleaned and cut', () => {
  expect(faultOf(error('EODD', 'a\nb\x1b'))).toBe('The request failed: a b\uFFFD (EODD).')
  expect(faultOf(new TypeError('x'.repeat(500)))).toMatch(
    /^The request failed: x{199}… \(TypeError\)\.$/,
  )
  expect(faultOf('text')).toBe('The request failed: text.')
})

test('our own sentences stay as they are', () => {
  expect(faultOf(new EvError('io', 'No answer came.'), 'X')).toBe('No answer came.')
})
