import type { Readable } from 'node:stream'
import type { Agent, Dispatcher } from 'undici'
import type { Resolver } from '../../engine/dns/resolver.ts'
import { type Clock, SECOND, yieldToEventLoop } from '../../platform/clock.ts'
import { formatDuration } from '../../platform/format.ts'
import { sanitizeText } from '../../platform/text.ts'
import { parseDestination } from '../webhook-url.ts'
import { type Dial, policyCheckedDial } from './policy-dial.ts'
import type {
  TransportResult,
  WebhookRequest,
  WebhookResponse,
  WebhookTransport,
} from './transport.ts'
import { TransportFault, toFault } from './transport-error.ts'

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

/**
 * Ends a connection by which more than so many bytes came. Limits of headers and bodies leave gaps that a receiver can
 * pour into for half a minute, and each byte of it is read: informational answers, extensions of chunks, blank lines.
 */
function limitBodyRead(socket: Connection, bytesMax: number): void {
  socket.on('readable', () => {
    if (socket.bytesRead > bytesMax)
      socket.destroy(new TransportFault('invalid_response', TOO_MUCH))
  })
}

type Connection = Readable & { readonly bytesRead: number }

const TOO_MUCH = 'The receiver sent far more than an answer.'

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

/** What is under way and has an end. */
type Deadlines = {
  /** Does something whose signal aborts when its time is over. `tooLate` is the sentence of the abort's PostFault. */
  within<T>(ms: number, tooLate: string, act: (signal: AbortSignal) => Promise<T>): Promise<T>
  /** Aborts all that is under way, and all that begins afterwards. */
  endAll(why: string): void
}

function deadlines(clock: Clock): Deadlines {
  const open = new Set<AbortController>()
  let ended: TransportFault | null = null
  return {
    async within(ms, tooLate, act) {
      if (ended !== null) throw ended
      const timer = new AbortController()
      const cancel = clock.after(ms, () => timer.abort(new TransportFault('timeout', tooLate)))
      open.add(timer)
      try {
        return await act(timer.signal)
      } finally {
        cancel()
        open.delete(timer)
      }
    },
    endAll(why) {
      ended = new TransportFault('interrupted', why)
      for (const timer of open) timer.abort(ended)
    },
  }
}
