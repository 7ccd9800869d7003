import type { Agent } from 'undici'
import type { Resolver } from '../../engine/dns/resolver.ts'
import { type Clock, SECOND, yieldToEventLoop } from '../../platform/clock.ts'
import { formatDuration } from '../../platform/format.ts'
import { parseDestination } from '../webhook-url.ts'
import { limitBodyRead } from './body-limit.ts'
import { deadlines } from './deadlines.ts'
import { type Dial, policyCheckedDial } from './policy-dial.ts'
import { BODY_READ_MAX, readAnswer } from './response.ts'
import type {
  TransportResult,
  WebhookRequest,
  WebhookResponse,
  WebhookTransport,
} from './transport.ts'
import { TransportFault, toFault } from './transport-error.ts'

export type HttpsPostOptions = {
  readonly clock: Clock
  readonly resolver: Resolver
  /** Which addresses may be dialled. */
  readonly mayDial: (ip: string) => boolean
  /** PEM of authorities that are believed beside the well-known ones. */
  readonly ca?: string
  /** How long an idle connection is kept; `IDLE_MS` when left out. */
  readonly idleMs?: number
}

/** For a whole attempt, from the lookup to the end of the answer's body (spec 8). */
export const DEADLINE_MS = 30 * SECOND

/** Post by HTTPS: to judged addresses only, with a valid certificate, following no redirect. Plain HTTP goes to loopback. */
export function httpsPost(options: HttpsPostOptions): WebhookTransport {
  const { clock } = options
  const { within, endAll } = deadlines(clock)
  const dial = policyCheckedDial(options)
  let agent: Promise<Agent> | null = null
  const openedAgent = () => {
    agent ??= openAgent(
      to => within(DEADLINE_MS, TOO_LATE, signal => dial(to, signal)),
      options.idleMs ?? IDLE_MS,
    )
    return agent
  }

  async function answerTo(letter: WebhookRequest, signal: AbortSignal): Promise<WebhookResponse> {
    const url = parseDestination(letter.url, options.mayDial)
    if (typeof url === 'string')
      throw new TransportFault('invalid_url', `Its URL cannot be used. ${url}`)
    const request = (await openedAgent()).request({
      origin: url.origin,
      path: `${url.pathname}${url.search}`,
      method: 'POST',
      headers: letter.headers,
      body: letter.body,
      signal,
    })
    // While a connection is being made, undici does not hear the signal.
    return readAnswer(await orAborted(request, signal))
  }

  return {
    async send(letter): Promise<TransportResult> {
      const startedAt = clock.monotonicNow()
      const outcome = await within(DEADLINE_MS, TOO_LATE, signal => answerTo(letter, signal)).then(
        answer => ({ answer, fault: null, faultCode: null }),
        (error: unknown) => {
          const { message: fault, faultCode } = toFault(error)
          return { answer: null, fault, faultCode }
        },
      )
      const durationMs = Math.round(clock.monotonicNow() - startedAt)
      // undici frees a connection one turn after the answer's end: a letter sent before would open one more.
      await yieldToEventLoop()
      return { ...outcome, durationMs }
    },
    async close() {
      endAll(CLOSED)
      await (await agent)?.destroy()
    },
  }
}

const TOO_LATE = `No answer came within ${formatDuration(DEADLINE_MS)}.`
const CLOSED = 'ev was stopped before an answer came.'

/** Loaded with the first letter: it would cost every start 85 ms. */
async function openAgent(dial: (to: URL) => ReturnType<Dial>, idleMs: number): Promise<Agent> {
  const { Agent } = await import('undici')
  return new Agent({
    connect: ({ protocol, host }, callback) =>
      dial(new URL(`${protocol}//${host}`)).then(
        socket => {
          limitBodyRead(socket, CONNECTION_BYTES_MAX)
          callback(null, socket)
        },
        (error: Error) => callback(error, null),
      ),
    allowH2: false,
    pipelining: 1,
    keepAliveTimeout: idleMs,
    keepAliveMaxTimeout: idleMs,
    maxRequestsPerClient: LETTERS_PER_CONNECTION,
    maxHeaderSize: HEADER_BYTES_MAX,
    // One deadline of ours is for everything.
    headersTimeout: 0,
    bodyTimeout: 0,
  })
}

/**
 * How long an idle connection is kept: long enough for one letter after the other, shorter than servers keep theirs,
 * as a letter that crosses with their closing is lost.
 */
const IDLE_MS = 1 * SECOND
/** After so many a host is judged anew, as its name may have another address by now. */
const LETTERS_PER_CONNECTION = 100
/** As Node's own. */
const HEADER_BYTES_MAX = 16 * 1_024
/** What all answers of a connection can have: 8 MB. */
const CONNECTION_BYTES_MAX = LETTERS_PER_CONNECTION * (BODY_READ_MAX + HEADER_BYTES_MAX)

function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const stop = () => reject(signal.reason)
  if (signal.aborted) stop()
  signal.addEventListener('abort', stop, { once: true })
  return Promise.race([promise, aborted])
}
