import { sanitizeText } from '../platform/text.ts'
import type { WebhookResponse } from './transport.ts'

/**
 * Maximum bytes read of a body, then the connection is dropped: a receiver needs no body at all.
 */
export const BODY_READ_MAX = 64 * 1_024
/** Maximum characters of the body that are stored, for debugging. */
export const EXCERPT_LENGTH_MAX = 4 * 1_024
/** Maximum headers that are stored; a usual response has about ten. */
export const STORED_HEADERS_MAX = 30
const HEADER_LENGTH_MAX = 200

/**
 * Reads the response after its status. A body that breaks off is kept as far as it arrived and does
 * not change the result.
 */
export async function readAnswer(response: OpenResponse): Promise<WebhookResponse> {
  const { statusCode, headers, body } = response
  const start = await readBodyStart(body)
  return { status: statusCode, headers: selectHeaders(headers), excerpt: toExcerpt(start, headers) }
}

/** A response whose body was not read yet. */
export type OpenResponse = {
  readonly statusCode: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: AsyncIterable<Buffer>
}
type Headers = OpenResponse['headers']
type BodyStart = { readonly bytes: Buffer; readonly isComplete: boolean }

/** Reads a body up to the maximum. */
export async function readBodyStart(body: AsyncIterable<Buffer>): Promise<BodyStart> {
  const chunks: Buffer[] = []
  let length = 0
  let isComplete = false
  try {
    for await (const chunk of body) {
      chunks.push(chunk)
      length += chunk.length
      if (length >= BODY_READ_MAX) break
    }
    isComplete = length < BODY_READ_MAX
  } catch {
    // The connection broke, or the deadline passed.
  }
  return { bytes: Buffer.concat(chunks).subarray(0, BODY_READ_MAX), isComplete }
}

/** The body is never decompressed: a few bytes can expand to gigabytes. */
function toExcerpt({ bytes, isComplete }: BodyStart, headers: Headers): string {
  if (bytes.length === 0) return ''
  const isCompressed = !/^(identity)?$/i.test(String(headers['content-encoding'] ?? '').trim())
  if (!isCompressed && !bytes.includes(0)) {
    // A character has at most four bytes; sanitizing more than is stored would cost milliseconds.
    const start = bytes.subarray(0, 4 * EXCERPT_LENGTH_MAX)
    return sanitizeText(start.toString('utf8'), EXCERPT_LENGTH_MAX)
  }
  return `(binary, ${isComplete ? '' : 'more than '}${bytes.length} bytes)`
}

function selectHeaders(headers: Headers): Record<string, string> {
  const selected = Object.entries(headers)
    // Cookies are secrets of the receiver.
    .filter(([name, value]) => name !== 'set-cookie' && value !== undefined)
    // Retry-After is evaluated later, so it must not be cut off.
    .toSorted(([a], [b]) => Number(b === 'retry-after') - Number(a === 'retry-after'))
    .slice(0, STORED_HEADERS_MAX)
    .map(([name, value]) => [truncate(name), truncate(String(value))])
  return Object.fromEntries(selected)
}

const truncate = (text: string) => sanitizeText(text, HEADER_LENGTH_MAX)
