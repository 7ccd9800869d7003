import { describe, expect, test } from 'vitest'
import { createIpPolicy } from '../../src/engine/smtp/dial-policy.ts'
import { createDownload } from '../../src/outbound/download.ts'
import { type S3Access, signS3Request } from '../../src/outbound/s3.ts'
import { HOUR } from '../../src/platform/clock.ts'
import { testAuthority } from '../support/certificate.ts'
import { fakeClock } from '../support/clock.ts'
import { expectedSignature, openS3, S3_KEYS, type S3Options } from '../support/s3-server.ts'
import { zone } from '../support/zone.ts'

const ACCESS: S3Access = { region: 'us-east-1', ...S3_KEYS }
const NOW = Date.UTC(2013, 4, 24)

// "Example: GET Object" in "Signature Calculations for the Authorization Header", Amazon S3 API
// Reference.
test('the stand-in for S3 computes the documented signature', () => {
  const signature = 'f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41'
  const request = {
    method: 'GET',
    path: '/test.txt',
    headers: {
      host: 'examplebucket.s3.amazonaws.com',
      range: 'bytes=0-9',
      'x-amz-content-sha256': 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
      'x-amz-date': '20130524T000000Z',
      authorization: `AWS4-HMAC-SHA256 Credential=${S3_KEYS.accessKeyId}/20130524/us-east-1/s3/aws4_request, SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, Signature=${signature}`,
    },
  }
  const { expected, sent } = expectedSignature(request, S3_KEYS.secretAccessKey) ?? {}
  expect([expected, sent]).toEqual([signature, signature])
})

describe('a signed request', () => {
  test.each<[string, string, Partial<S3Access>, string]>([
    [
      'by the host name',
      's3://lists/a/b.csv',
      {},
      'https://lists.s3.us-east-1.amazonaws.com/a/b.csv',
    ],
    [
      'by the path if the name has a dot',
      's3://my.lists/b.csv',
      { region: 'eu-west-1' },
      'https://s3.eu-west-1.amazonaws.com/my.lists/b.csv',
    ],
    [
      'in China',
      's3://lists/b.csv',
      { region: 'cn-north-1' },
      'https://lists.s3.cn-north-1.amazonaws.com.cn/b.csv',
    ],
    [
      'by the path at another service',
      's3://lists/b.csv',
      { endpoint: 'https://minio.example:9000/' },
      'https://minio.example:9000/lists/b.csv',
    ],
    [
      'with all characters of its key encoded',
      "s3://lists/März 1+1 (a)/?#%2e!*'.csv",
      {},
      'https://lists.s3.us-east-1.amazonaws.com/M%C3%A4rz%201%2B1%20%28a%29/%3F%23%252e%21%2A%27.csv',
    ],
  ])('names the bucket %s', async (_, url, access, expected) => {
    const signed = await signS3Request(url, { ...ACCESS, ...access }, NOW)
    expect(signed.url).toBe(expected)
    const { host, pathname } = new URL(signed.url)
    const request = { method: 'GET', path: pathname, headers: { host, ...signed.headers } }
    const { expected: signature, sent } = expectedSignature(request, S3_KEYS.secretAccessKey) ?? {}
    expect(sent).toBe(signature)
  })

  test.each<[string, string, Partial<S3Access>, RegExp]>([
    ['no key', 's3://lists', {}, /s3:\/\/BUCKET\/KEY/],
    ['no bucket', 's3:///a.csv', {}, /s3:\/\/BUCKET\/KEY/],
    ['a user in the bucket', 's3://a@b/a.csv', {}, /s3:\/\/BUCKET\/KEY/],
    ['dots in the key', 's3://lists/../other/a.csv', {}, /"\.\."/],
    ['a host in the region', 's3://lists/a.csv', { region: 'x.evil.example/' }, /region/],
    ['no region', 's3://lists/a.csv', { region: '' }, /region/],
    ['no scheme in the endpoint', 's3://lists/a.csv', { endpoint: 's3.example' }, /not a URL/],
    ['no host in the endpoint', 's3://lists/a.csv', { endpoint: 'https://' }, /not a URL/],
    [
      'a query in the endpoint',
      's3://lists/a.csv',
      { endpoint: 'https://a.example/?x=' },
      /endpoint/,
    ],
    [
      'a line break in the key ID',
      's3://lists/a.csv',
      { accessKeyId: 'SECRET\r\nx' },
      /access key ID/,
    ],
    ['an empty secret', 's3://lists/a.csv', { secretAccessKey: '' }, /secret access key/],
    [
      'another alphabet in the token',
      's3://lists/a.csv',
      { sessionToken: 'SECRETü' },
      /session token/,
    ],
  ])('with %s is refused without its values', async (_, url, access, message) => {
    const error = await signS3Request(url, { ...ACCESS, ...access }, NOW).catch(one => one)
    expect(error).toMatchObject({ kind: 'invalid_url', message: expect.stringMatching(message) })
    expect(error.message).not.toContain('SECRET')
  })
})

type GetOptions = Partial<S3Options> & {
  readonly access?: Partial<S3Access>
  /** The time of the client. */
  readonly now?: number
}

/** Downloads an object of a stand-in for S3. */
async function get(url: string, { access = {}, now = NOW, ...options }: GetOptions = {}) {
  const clock = fakeClock(now)
  const objects = { '/lists/a b+c.csv': 'ann@a.test\n' }
  const { port } = await openS3({ objects, clock: fakeClock(NOW), ...options })
  const download = createDownload({
    clock,
    resolver: zone({ 's3.example': { A: ['127.0.0.1'] } }),
    mayDial: createIpPolicy(['127.0.0.1']),
    ca: testAuthority().cert,
  })
  const s3 = { ...ACCESS, endpoint: `https://s3.example:${port}`, ...access }
  return download({ url, s3, bytesMax: 1_000, totalMs: null }, async bytes =>
    Buffer.concat(await bytes.toArray()).toString(),
  )
}

describe('an object', () => {
  test('is downloaded, if the service finds the signature valid', async () => {
    expect(await get('s3://lists/a b+c.csv')).toBe('ann@a.test\n')
  })

  test('is downloaded with temporary credentials', async () => {
    const sessionToken = 'FwoGZXIvYXdzEBYaD/+=='
    expect(await get('s3://lists/a b+c.csv', { sessionToken, access: { sessionToken } })).toBe(
      'ann@a.test\n',
    )
  })

  test.each<[string, string, GetOptions, string, RegExp]>([
    [
      'a wrong secret',
      's3://lists/a b+c.csv',
      { access: { secretAccessKey: 'another' } },
      'denied',
      /answered with 403 SignatureDoesNotMatch\. Check the credentials/,
    ],
    [
      'an unknown key',
      's3://lists/a b+c.csv',
      { access: { accessKeyId: 'AKIAOTHER' } },
      'denied',
      /403 InvalidAccessKeyId\. Check the credentials/,
    ],
    [
      'an expired token',
      's3://lists/a b+c.csv',
      { sessionToken: 'new', access: { sessionToken: 'old' } },
      'denied',
      /400 ExpiredToken\. Check the credentials/,
    ],
    [
      'a wrong clock',
      's3://lists/a b+c.csv',
      { now: NOW + HOUR },
      'denied',
      /403 RequestTimeTooSkewed/,
    ],
    [
      'another region',
      's3://lists/a b+c.csv',
      { region: 'eu-west-1' },
      'status',
      /The bucket is in the region eu-west-1\. Use this region\./,
    ],
    ['no such object', 's3://lists/other.csv', {}, 'status', /404 NoSuchKey\. Check the bucket/],
  ])('with %s is an error that says what to do', async (_, url, options, kind, message) => {
    const error = await get(url, options).catch(one => one)
    expect(error).toMatchObject({ kind, message: expect.stringMatching(message) })
    expect(error.message).toMatch(/^The list cannot be fetched from s3\.example:\d+\. /)
    expect(JSON.stringify([error.message, error.stack])).not.toMatch(/wJalr|AKIA|a b|a%20b/)
  })
})
