import type { Dispatcher } from 'undici'
import { sanitizeText } from '../../platform/text.ts'
import type { WebhookResponse } from './transport.ts'

/** So much of a body is read, then the connection is dropped: a receiver needs none at all. */
export const BODY_READ_MAX = 64 * 1_024
/** So much of it is kept, in characters, for people who look for what went wrong. */
export const EXCERPT_LENGTH_MAX = 4 * 1_024
/** So many headers are kept; usual answers have about ten. */
export const KEPT_HEADERS_MAX = 30
const HEADER_LENGTH_MAX = 200

/** Reads an answer whose status has come. What its body does then changes nothing of it: it is kept as far as it came. */
export async function readAnswer(response: Response): Promise<WebhookResponse> {
  const { statusCode, headers, body } = response
  const begin = await beginningOf(body)
  return { status: statusCode, headers: keptHeaders(headers), excerpt: excerptOf(begin, headers) }
}

type Response = Pick<Dispatcher.ResponseData, 'statusCode' | 'headers' | 'body'>
type Headers = Response['headers']
type Beginning = { readonly bytes: Buffer; readonly isWhole: boolean }

async function beginningOf(body: AsyncIterable<Buffer>): Promise<Beginning> {
  const chunks: Buffer[] = []
  let length = 0
  let isWhole = false
  try {
    for await (const chunk of body) {
      chunks.push(chunk)
      length += chunk.length
      if (length >= BODY_READ_MAX) break
    }
    isWhole = length < BODY_READ_MAX
  } catch {
    // The connection broke, or the time is over.
  }
  return { bytes: Buffer.concat(chunks).subarray(0, BODY_READ_MAX), isWhole }
}

/** It is never unpacked: a few bytes can unpack to gigabytes. */
function excerptOf({ bytes, isWhole }: Beginning, headers: Headers): string {
  if (bytes.length === 0) return ''
  const isPacked = !/^(identity)?$/i.test(String(headers['content-encoding'] ?? '').trim())
  if (!isPacked && !bytes.includes(0)) {
    // No character has more than four bytes; to clean more than is kept would cost milliseconds.
    const begin = bytes.subarray(0, 4 * EXCERPT_LENGTH_MAX)
    return sanitizeText(begin.toString('utf8'), EXCERPT_LENGTH_MAX)
  }
  return `(binary, ${isWhole ? '' : 'more than '}${bytes.length} bytes)`
}

function keptHeaders(headers: Headers): Record<string, string> {
  const shown = Object.entries(headers)
    // Cookies are secrets of the receiver.
    .filter(([name, value]) => name !== 'set-cookie' && value !== undefined)
    // That one is obeyed, so it is never among those left out.
    .toSorted(([a], [b]) => Number(b === 'retry-after') - Number(a === 'retry-after'))
    .slice(0, KEPT_HEADERS_MAX)
    .map(([name, value]) => [short(name), short(String(value))])
  return Object.fromEntries(shown)
}

const short = (text: string) => sanitizeText(text, HEADER_LENGTH_MAX)
