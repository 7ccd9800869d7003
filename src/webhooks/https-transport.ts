import type { Agent, Dispatcher } from 'undici'
import type { Resolver } from '../engine/dns/resolver.ts'
import { HEADER_BYTES_MAX, openAgent, policyCheckedDial } from '../outbound/policy-dial.ts'
import { TransportFault, toFault } from '../outbound/transport-error.ts'
import { parseDestination } from '../outbound/url-policy.ts'
import { abortable } from '../platform/abort.ts'
import { type Clock, SECOND, yieldToEventLoop } from '../platform/clock.ts'
import { formatDuration } from '../platform/format.ts'
import { sanitizeText } from '../platform/text.ts'
import type {
  TransportResult,
  WebhookRequest,
  WebhookResponse,
  WebhookTransport,
} from './transport.ts'

type HttpsTransportOptions = {
  readonly clock: Clock
  readonly resolver: Resolver
  /** Whether an IP address may be dialed. */
  readonly mayDial: (ip: string) => boolean
  /** PEM of CAs that are trusted in addition to the default ones. */
  readonly ca?: string
  /** How long an idle connection is kept; `IDLE_MS` if omitted. */
  readonly idleMs?: number
}

type OpenOptions = Pick<Dispatcher.RequestOptions, 'headers' | 'body'> & {
  readonly method: 'GET' | 'POST'
  readonly signal: AbortSignal
}

/** Deadline of an attempt, from the DNS query to the end of the response body (spec 8). */
export const DEADLINE_MS = 30 * SECOND

/**
 * Sends webhook requests over HTTPS: only to addresses that the policy allows, with a valid
 * certificate, without following redirects. Plain HTTP goes to loopback only.
 */
export function createHttpsTransport(options: HttpsTransportOptions): WebhookTransport {
  const { clock } = options
  const { within, abortAll } = createDeadlines(clock)
  const dial = policyCheckedDial(options)
  let agent: Promise<Agent> | null = null
  const getAgent = () => {
    agent ??= openAgent({
      dial: to => within(DEADLINE_MS, TOO_LATE, signal => dial(to, signal)),
      idleMs: options.idleMs ?? IDLE_MS,
      requestsPerConnection: REQUESTS_PER_CONNECTION,
      connectionBytesMax: CONNECTION_BYTES_MAX,
    })
    return agent
  }

  async function open(url: string, request: OpenOptions): Promise<Response> {
    const to = parseDestination(url, options.mayDial)
    if (typeof to === 'string') throw new TransportFault('invalid_url', `Invalid URL. ${to}`)
    const path = `${to.pathname}${to.search}`
    const response = (await getAgent()).request({ ...request, origin: to.origin, path })
    // undici ignores the signal while it connects.
    return abortable(response, request.signal)
  }

  const sendOnce = async ({ url, ...request }: WebhookRequest, signal: AbortSignal) =>
    readAnswer(await open(url, { ...request, method: 'POST', signal }))

  async function getOnce(url: string, signal: AbortSignal): Promise<string | null> {
    const { statusCode, body } = await open(url, { method: 'GET', signal })
    const { bytes, isComplete } = await readBodyStart(body)
    if (statusCode >= 400 && statusCode < 500) return null
    if (statusCode !== 200)
      throw new TransportFault('http_status', `The server answered with ${statusCode}.`)
    if (!isComplete)
      throw new TransportFault('invalid_response', 'The document is too long or incomplete.')
    return bytes.toString('utf8')
  }

  return {
    async send(request): Promise<TransportResult> {
      const startedAt = clock.monotonicNow()
      const outcome = await within(DEADLINE_MS, TOO_LATE, signal => sendOnce(request, signal)).then(
        answer => ({ answer, fault: null, faultCode: null }),
        (error: unknown) => {
          const { message: fault, faultCode } = toFault(error)
          return { answer: null, fault, faultCode }
        },
      )
      const durationMs = Math.round(clock.monotonicNow() - startedAt)
      // undici frees a connection one turn after the end of the response: a request sent before
      // would open another one.
      await yieldToEventLoop()
      return { ...outcome, durationMs }
    },
    async get(url) {
      try {
        return await within(DEADLINE_MS, TOO_LATE, signal => getOnce(url, signal))
      } catch (error) {
        throw toFault(error, 'The server')
      }
    },
    async close() {
      abortAll(CLOSED)
      await (await agent)?.destroy()
    },
  }
}

/**
 * Maximum bytes read of a body, then the connection is dropped: a receiver needs no body at all.
 */
export const BODY_READ_MAX = 64 * 1_024
/** Maximum characters of the body that are stored, for debugging. */
export const EXCERPT_LENGTH_MAX = 4 * 1_024
/** Maximum headers that are stored; a usual response has about ten. */
export const STORED_HEADERS_MAX = 30
const HEADER_LENGTH_MAX = 200

const TOO_LATE = `No response within ${formatDuration(DEADLINE_MS)}.`
const CLOSED = 'ev was stopped before a response arrived.'

/**
 * How long an idle connection is kept: long enough for consecutive requests, shorter than servers
 * keep theirs, because a request that is sent while the server closes is lost.
 */
const IDLE_MS = 1 * SECOND
/** Requests after which the host is resolved and checked again. */
const REQUESTS_PER_CONNECTION = 100
/** Limit for all responses of a connection: 8 MB. */
const CONNECTION_BYTES_MAX = REQUESTS_PER_CONNECTION * (BODY_READ_MAX + HEADER_BYTES_MAX)

/**
 * Reads the response after its status. A body that breaks off is kept as far as it arrived and does
 * not change the result.
 */
export async function readAnswer(response: Response): Promise<WebhookResponse> {
  const { statusCode, headers, body } = response
  const start = await readBodyStart(body)
  return { status: statusCode, headers: selectHeaders(headers), excerpt: toExcerpt(start, headers) }
}

type Response = Pick<Dispatcher.ResponseData, 'statusCode' | 'headers' | 'body'>
type Headers = Response['headers']
type BodyStart = { readonly bytes: Buffer; readonly isComplete: boolean }

async function readBodyStart(body: AsyncIterable<Buffer>): Promise<BodyStart> {
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

/** Operations in flight with a deadline. */
type Deadlines = {
  /**
   * Runs `act` with a signal that aborts at the deadline, with a TransportFault that says
   * `tooLate`.
   */
  within<T>(ms: number, tooLate: string, act: (signal: AbortSignal) => Promise<T>): Promise<T>
  /** Aborts all operations, also those that start later. */
  abortAll(why: string): void
}

function createDeadlines(clock: Clock): Deadlines {
  const running = new Set<AbortController>()
  let closed: TransportFault | null = null
  return {
    async within(ms, tooLate, act) {
      if (closed !== null) throw closed
      const timer = new AbortController()
      const cancel = clock.after(ms, () => timer.abort(new TransportFault('timeout', tooLate)))
      running.add(timer)
      try {
        return await act(timer.signal)
      } finally {
        cancel()
        running.delete(timer)
      }
    },
    abortAll(why) {
      closed = new TransportFault('interrupted', why)
      for (const timer of running) timer.abort(closed)
    },
  }
}
