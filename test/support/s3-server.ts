import { createHash, createHmac, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../../src/platform/clock.ts'
import type { Received, Receiver, ReceiverOptions } from './http-receiver.ts'
import { openReceiver } from './https-post.ts'

export const S3_KEYS = {
  accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
}

export type S3Request = {
  readonly method: string
  /** As sent, with the query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
}

/**
 * Returns the signature that a request must have, by "Signature Calculations for the Authorization
 * Header" of the Amazon S3 API Reference; null if it has no Authorization header of that form.
 */
export function expectedSignature(
  { method, path, headers }: S3Request,
  secretAccessKey: string,
): { readonly expected: string; readonly sent: string; readonly keyId: string } | null {
  const authorization = String(headers.authorization ?? '')
  const [, credential = '', signed = '', sent = ''] =
    /^AWS4-HMAC-SHA256 Credential=([^,]+), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/.exec(
      authorization,
    ) ?? []
  if (sent === '') return null
  const [keyId = '', day = '', region = '', service = '', end = ''] = credential.split('/')
  const [rawPath = '', query = ''] = path.split('?')
  const canonical = [
    ...[method, decodeURIComponent(rawPath).split('/').map(encode).join('/'), query],
    ...signed.split(';').map(name => `${name}:${String(headers[name]).trim()}`),
    ...['', signed, String(headers['x-amz-content-sha256'])],
  ].join('\n')
  const hash = createHash('sha256').update(canonical).digest('hex')
  const time = String(headers['x-amz-date'])
  const text = ['AWS4-HMAC-SHA256', time, [day, region, service, end].join('/'), hash].join('\n')
  const key = [day, region, service, end].reduce<string | Buffer>(
    (secret, part) => createHmac('sha256', secret).update(part).digest(),
    `AWS4${secretAccessKey}`,
  )
  return { expected: createHmac('sha256', key).update(text).digest('hex'), sent, keyId }
}

const encode = (text: string) =>
  encodeURIComponent(text).replace(
    /[!'()*]/g,
    char => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  )

export type S3Options = ReceiverOptions & {
  /** Objects by their path `/bucket/key`, decoded. */
  readonly objects: Readonly<Record<string, string | Buffer>>
  readonly clock: Clock
  readonly region?: string
  readonly sessionToken?: string
}

/**
 * Starts a stand-in for S3 with path-style addresses that checks the signature of each request. Its
 * name is `s3.example`.
 */
export function openS3(options: S3Options): Promise<Receiver> {
  return openReceiver({
    name: 's3.example',
    answer: request => answer(request, options),
    ...options,
  })
}

/** The most that the time of a request may differ from that of the service. */
const SKEW_MAX_MS = 15 * 60_000

function answer(request: Received, options: S3Options) {
  const { objects, clock, region = 'us-east-1', sessionToken } = options
  const { headers, path } = request
  const found = expectedSignature(request, S3_KEYS.secretAccessKey)
  if (found === null) return fault(403, 'AccessDenied')
  if (found.keyId !== S3_KEYS.accessKeyId) return fault(403, 'InvalidAccessKeyId')
  if (!String(headers.authorization).includes(`/${region}/s3/aws4_request`))
    return fault(400, 'AuthorizationHeaderMalformed', `<Region>${region}</Region>`)
  const time = String(headers['x-amz-date']).replace(
    /^(....)(..)(..)T(..)(..)(..)Z$/,
    '$1-$2-$3T$4:$5:$6Z',
  )
  if (!(Math.abs(Date.parse(time) - clock.now()) < SKEW_MAX_MS))
    return fault(403, 'RequestTimeTooSkewed')
  if (!timingSafeEqual(Buffer.from(found.sent), Buffer.from(found.expected)))
    return fault(403, 'SignatureDoesNotMatch')
  if (headers['x-amz-security-token'] !== sessionToken) return fault(400, 'ExpiredToken')
  const body = objects[decodeURIComponent(path)]
  return body === undefined ? fault(404, 'NoSuchKey') : { status: 200, ...framed(body) }
}

function fault(status: number, code: string, more = '') {
  const body = `<?xml version="1.0"?><Error><Code>${code}</Code><Message>m</Message>${more}</Error>`
  return { status, ...framed(body) }
}

/** A file as most servers send it: with its length. */
const framed = (body: string | Buffer) => ({
  body,
  headers: { 'content-length': String(Buffer.byteLength(body)) },
})
