import type { Agent, Dispatcher } from 'undici'
import {
  type DialOptions,
  HEADER_BYTES_MAX,
  openAgent,
  policyCheckedDial,
} from '../outbound/policy-dial.ts'
import { TransportFault, toFault } from '../outbound/transport-error.ts'
import { parseDestination } from '../outbound/url-policy.ts'
import { abortable } from '../platform/abort.ts'
import { type Clock, SECOND, yieldToEventLoop } from '../platform/clock.ts'
import { formatDuration } from '../platform/format.ts'
import { BODY_READ_MAX, type OpenResponse, readAnswer, readBodyStart } from './response.ts'
import type { TransportResult, WebhookRequest, WebhookTransport } from './transport.ts'

type HttpsTransportOptions = DialOptions & {
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

  async function open(url: string, request: OpenOptions): Promise<OpenResponse> {
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
