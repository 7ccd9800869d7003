import type { Dispatcher } from 'undici'
import { type DownloadFault, hostFault } from './download-fault.ts'
import { parseS3Error, S3_ERROR_BYTES_MAX } from './s3.ts'

type Response = Dispatcher.ResponseData

/** Describes a response with another status than 200, and what to do. */
export async function readStatusFault(
  response: Response,
  host: string,
  isS3: boolean,
): Promise<DownloadFault> {
  const { statusCode: status } = response
  const isDenied = status === 401 || status === 403
  if (isS3) return await readS3Fault(response, host)
  const advice = isDenied
    ? 'Use a URL that needs no sign-in, such as a presigned one that has not expired.'
    : status === 404 || status === 410
      ? 'Check the URL.'
      : status >= 500
        ? 'Try again later.'
        : 'Use a URL that returns the file itself.'
  return hostFault(
    isDenied ? 'denied' : 'status',
    host,
    `The server answered with ${status}. ${advice}`,
  )
}

async function readS3Fault({ statusCode, headers, body }: Response, host: string) {
  const { code, region } = parseS3Error(await readStart(body))
  const bucketRegion = region ?? headers['x-amz-bucket-region'] ?? null
  const answer = `The storage answered with ${statusCode}${code === null ? '' : ` ${code}`}.`
  if (REGION_CODES.has(code ?? '') || statusCode === 301 || statusCode === 307) {
    const advice =
      typeof bucketRegion === 'string' && /^[a-z0-9-]{1,40}$/i.test(bucketRegion)
        ? `The bucket is in the region ${bucketRegion}. Use this region.`
        : 'Check the region of the bucket.'
    return hostFault('status', host, `${answer} ${advice}`)
  }
  if (statusCode === 401 || statusCode === 403 || CREDENTIAL_CODES.has(code ?? '')) {
    const advice =
      'Check the credentials, the region, the name of the object, and the permission to read it.'
    return hostFault('denied', host, `${answer} ${advice}`)
  }
  const advice =
    statusCode === 404
      ? 'Check the bucket and the name of the object.'
      : statusCode >= 500
        ? 'Try again later.'
        : 'Check the endpoint.'
  return hostFault('status', host, `${answer} ${advice}`)
}

const REGION_CODES = new Set([
  ...['AuthorizationHeaderMalformed', 'PermanentRedirect', 'TemporaryRedirect'],
  'IllegalLocationConstraintException',
])

/** S3 reports these with 400. */
const CREDENTIAL_CODES = new Set(['ExpiredToken', 'InvalidToken', 'InvalidAccessKeyId'])

async function readStart(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body) {
    chunks.push(chunk)
    size += chunk.byteLength
    if (size >= S3_ERROR_BYTES_MAX) break
  }
  return Buffer.concat(chunks).subarray(0, S3_ERROR_BYTES_MAX).toString('utf8')
}
