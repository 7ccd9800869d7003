import { abortable } from '../platform/abort.ts'
import { SECOND } from '../platform/clock.ts'
import { formatDuration } from '../platform/format.ts'
import {
  type Dial,
  type DialOptions,
  HEADER_BYTES_MAX,
  openAgent,
  policyCheckedDial,
} from './policy-dial.ts'
import { TransportFault, toFault } from './transport-error.ts'
import { parseDestination } from './url-policy.ts'

/**
 * Sends a request and returns the complete response; a redirect is a response. Rejects with a
 * TransportFault.
 */
export type PolicyFetch = (url: string, request: FetchRequest) => Promise<Response>

export type FetchRequest = {
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  /** Form fields; null for none. */
  readonly body: URLSearchParams | null
}

/** Time for a request, from the DNS query to the end of the response: a person waits for it. */
export const FETCH_TIMEOUT_MS = 10 * SECOND

/** Bytes of a response. The documents of identity providers have up to about 30 KB. */
export const FETCH_BYTES_MAX = 256 * 1_024

/**
 * Returns a `fetch` for documents of a few KB over HTTPS: only from addresses that the policy allows,
 * with a valid certificate, without following redirects. Plain HTTP goes to loopback only.
 */
export function createPolicyFetch(options: DialOptions): PolicyFetch {
  const { clock, mayDial } = options
  const dial = policyCheckedDial(options)
  return async (url, request) => {
    const to = parseDestination(url, mayDial)
    if (typeof to === 'string') throw new TransportFault('invalid_url', `Invalid URL. ${to}`)
    const late = new AbortController()
    const cancel = clock.after(FETCH_TIMEOUT_MS, () => late.abort(TOO_LATE()))
    try {
      return await abortable(send(to, request, dial, late.signal), late.signal)
    } catch (error) {
      throw toFault(error, 'The server')
    } finally {
      cancel()
    }
  }
}

const TOO_LATE = () =>
  new TransportFault('timeout', `No response within ${formatDuration(FETCH_TIMEOUT_MS)}.`)

/** Opens a connection of its own: requests are rare, and the host is checked for each. */
async function send(
  to: URL,
  { method, headers, body }: FetchRequest,
  dial: Dial,
  signal: AbortSignal,
): Promise<Response> {
  const agent = await openAgent({
    dial: url => dial(url, signal),
    idleMs: SECOND,
    requestsPerConnection: 1,
    // The sizes of chunks are sent with them.
    connectionBytesMax: 2 * FETCH_BYTES_MAX + HEADER_BYTES_MAX,
  })
  try {
    const response = await agent.request({
      method,
      origin: to.origin,
      path: `${to.pathname}${to.search}`,
      headers: { ...headers, 'accept-encoding': 'identity' },
      body: body === null ? null : String(body),
      signal,
    })
    const bytes = await readAll(response.body)
    const type = response.headers['content-type']
    return new Response(bytes.length === 0 ? null : bytes, {
      status: response.statusCode,
      ...(typeof type === 'string' && { headers: { 'content-type': type } }),
    })
  } finally {
    await agent.destroy()
  }
}

async function readAll(body: AsyncIterable<Uint8Array>): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.byteLength
    if (size > FETCH_BYTES_MAX) throw TOO_LARGE()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

const TOO_LARGE = () =>
  new TransportFault(
    'invalid_response',
    `The server answered with more than ${FETCH_BYTES_MAX / 1_024} KiB.`,
  )
