import { parseUrl } from '../platform/url.ts'
import { invalidUrl } from './download-fault.ts'

/** A bucket of Amazon S3 or a compatible service, and the credentials to read it. */
export type S3Access = {
  /** URL of the service; Amazon S3 if omitted. */
  readonly endpoint?: string | undefined
  readonly region: string
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string | undefined
}

export const isS3Url = (url: string) => /^s3:/i.test(url)

type SignedRequest = { readonly url: string; readonly headers: Readonly<Record<string, string>> }

/**
 * Returns the request that gets the object of an `s3://bucket/key` URL, with Signature Version 4.
 * Throws DownloadFault for an invalid URL or invalid credentials, without their values.
 */
export async function signS3Request(
  text: string,
  access: S3Access,
  now: number,
): Promise<SignedRequest> {
  const { region, accessKeyId, secretAccessKey, sessionToken } = access
  checkCredentials(access)
  const url = toObjectUrl(text, access)
  const { AwsV4Signer } = await import('aws4fetch')
  const signer = new AwsV4Signer({
    url,
    region,
    service: 's3',
    accessKeyId,
    secretAccessKey,
    datetime: new Date(now).toISOString().replace(/[-:]|\.\d+/g, ''),
    ...(sessionToken === undefined ? {} : { sessionToken }),
  })
  const { headers } = await signer.sign()
  return { url, headers: Object.fromEntries(headers) }
}

/** Values of headers; the error of the library would contain them. */
function checkCredentials({ accessKeyId, secretAccessKey, sessionToken }: S3Access): void {
  const values = {
    'access key ID': accessKeyId,
    'secret access key': secretAccessKey,
    ...(sessionToken === undefined ? {} : { 'session token': sessionToken }),
  }
  const invalid = Object.entries(values).find(([, value]) => !/^[\x21-\x7e]+$/.test(value))
  if (invalid !== undefined)
    throw invalidUrl(
      `The ${invalid[0]} of the bucket is empty or has spaces or special characters.`,
    )
}

/** The region becomes a part of the host name. */
const REGION = /^[a-z0-9-]{1,40}$/i
/** Services other than Amazon S3 also allow capital letters and underscores. */
const BUCKET = /^[a-z0-9][\w.-]{1,62}$/i

/**
 * Returns the URL of an object: the bucket is the host name at Amazon S3, otherwise the start of
 * the path. A certificate for `*.s3.REGION.amazonaws.com` does not include names with dots.
 */
function toObjectUrl(text: string, { endpoint, region }: S3Access): string {
  const [, bucket = '', key = ''] = /^s3:\/\/([^/]*)\/(.+)$/is.exec(text) ?? []
  if (!BUCKET.test(bucket)) throw invalidUrl('Write s3://BUCKET/KEY, such as s3://lists/march.csv.')
  if (!REGION.test(region)) throw invalidUrl('The region has an invalid form. Example: us-east-1.')
  const segments = key.split('/')
  // They would be resolved like those of a path.
  if (segments.some(segment => segment === '.' || segment === '..'))
    throw invalidUrl('The key of an object must not contain the parts "." or "..".')
  const path = segments.map(encodeSegment).join('/')
  if (endpoint !== undefined) return `${toBase(endpoint)}/${bucket}/${path}`
  const domain = region.startsWith('cn-') ? 'amazonaws.com.cn' : 'amazonaws.com'
  return /^[a-z0-9-]+$/.test(bucket)
    ? `https://${bucket}.s3.${region}.${domain}/${path}`
    : `https://s3.${region}.${domain}/${bucket}/${path}`
}

function toBase(endpoint: string): string {
  if (parseUrl(endpoint) === null)
    throw invalidUrl('The endpoint of the bucket is not a URL, such as https://s3.example.com.')
  if (/[?#]/.test(endpoint)) throw invalidUrl('The endpoint must not contain ? or #.')
  return endpoint.replace(/(?<!\/)\/+$/, '')
}

/** Encodes all but the unreserved characters, as the signature does (RFC 3986 §2.3). */
const encodeSegment = (segment: string) =>
  encodeURIComponent(segment.toWellFormed()).replace(
    /[!'()*]/g,
    char => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  )

/** Enough for an error document of S3, which has about 500 bytes. */
export const S3_ERROR_BYTES_MAX = 4 * 1_024

/** Returns code and region of an error document of S3. */
export const parseS3Error = (xml: string) => ({
  code: /<Code>(\w{1,60})<\/Code>/.exec(xml)?.[1] ?? null,
  region: /<Region>([a-z0-9-]{1,40})<\/Region>/i.exec(xml)?.[1] ?? null,
})
