import { type Attempt, startAttempt } from './attempt.ts'
import type { ClientDeps } from './deps.ts'
import { EvApiError, EvConnectionError } from './error.ts'
import { parseApiError, parseRateLimit, type RateLimit, readJson } from './response.ts'
import { withChunkTimeout } from './stream.ts'

/** Options of a single call. */
export type CallOptions = {
  /** Aborts the call, its retries and its stream; the call rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined
  /** Timeout per attempt; for streams until the response starts, and then per chunk. */
  readonly timeoutMs?: number | undefined
  /** Maximum number of retries. */
  readonly retries?: number | undefined
}

/** Options of calls that create something. By default each call generates an Idempotency-Key. */
export type CreateOptions = CallOptions & { readonly idempotencyKey?: string | undefined }

type Request = {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Path including `/v1`, with encoded segments. */
  readonly path: string
  readonly query?: object | undefined
  /** Expected response type. Default: JSON. */
  readonly accept?: string
  /** Sent as multipart if it is FormData, otherwise as JSON. */
  readonly body?: object | undefined
  /** Whether the request is not idempotent and must carry an Idempotency-Key. */
  readonly creates?: boolean
  /** Default timeout, for requests that take long. */
  readonly timeoutMs?: number | undefined
  /** Time that the service may hold the request (long polling). */
  readonly waitMs?: number | undefined
}

/** Metadata of a response, passed to `onAnswer`. */
export type ResponseInfo = {
  readonly method: Request['method']
  readonly path: string
  readonly status: number
  /** Attempt number, from 0. */
  readonly attempt: number
  readonly requestId: string | null
  readonly rateLimit: RateLimit | null
  /** Whether this is the stored response to an earlier request with the same Idempotency-Key. */
  readonly replayed: boolean
}

type ConnectionOptions = {
  readonly deps: ClientDeps
  readonly baseUrl: string
  readonly headers: Readonly<Record<string, string>>
  readonly timeoutMs: number
  readonly retries: number
  readonly onAnswer: (info: ResponseInfo) => void
}

/** Sends requests with retries. */
export type Connection = {
  json<T>(request: Request, options?: CreateOptions): Promise<T>
  stream(request: Request, options?: CallOptions): Promise<ReadableStream<Uint8Array>>
}

export function createConnection(connection: ConnectionOptions): Connection {
  return {
    async json<T>(request: Request, options: CreateOptions = {}) {
      const { response, text } = await sendWithRetries(connection, request, options, readWhole)
      return readJson(response, text) as T
    },
    stream: (request, options = {}) => sendWithRetries(connection, request, options, readChunks),
  }
}

/** Reads a response body under the timeout of the attempt. */
type Read<T> = (response: Response, attempt: Attempt) => Promise<T>

const readWhole: Read<{ response: Response; text: string }> = async (response, attempt) => {
  const text = await response.text()
  attempt.end()
  return { response, text }
}

const readChunks: Read<ReadableStream<Uint8Array>> = async (response, attempt) => {
  attempt.pause()
  if (response.body === null) {
    attempt.end()
    return new ReadableStream({ start: controller => controller.close() })
  }
  return withChunkTimeout(response.body, attempt)
}

async function sendWithRetries<T>(
  connection: ConnectionOptions,
  request: Request,
  options: CreateOptions,
  read: Read<T>,
): Promise<T> {
  const { deps } = connection
  const retries = options.retries ?? connection.retries
  // All attempts share one key, so that the service applies the request once.
  const key = request.creates ? idempotencyKeyFor(options, deps) : null
  const url = buildUrl(connection.baseUrl, request)
  const init = buildInit(connection, request, key)
  for (let number = 0; ; number++) {
    options.signal?.throwIfAborted()
    const outcome = await tryOnce(connection, { request, options, url, init, number, read })
    if (outcome.response !== null) {
      connection.onAnswer(toResponseInfo(request, outcome.response, number))
    }
    if ('value' in outcome) return outcome.value
    const pauseMs = retryDelayMs(asFailure(outcome.error), {
      attempt: number,
      retries,
      random: deps.random,
    })
    if (pauseMs === null) throw outcome.error
    await deps.sleep(pauseMs, options.signal)
  }
}

type AttemptInput<T> = {
  readonly request: Request
  readonly options: CreateOptions
  readonly url: string
  readonly init: RequestInit
  readonly number: number
  readonly read: Read<T>
}

/** Result of an attempt; `response` is null if none arrived. */
type Outcome<T> = { readonly response: Response | null } & (
  | { readonly value: T }
  | { readonly error: EvApiError | EvConnectionError }
)

/** Makes one attempt; throws only if the caller aborts it. */
async function tryOnce<T>(
  connection: ConnectionOptions,
  { request, options, url, init, number, read }: AttemptInput<T>,
): Promise<Outcome<T>> {
  const timeoutMs =
    (options.timeoutMs ?? request.timeoutMs ?? connection.timeoutMs) + (request.waitMs ?? 0)
  const attempt = startAttempt(connection.deps, timeoutMs, options.signal)
  let response: Response | null = null
  try {
    response = await connection.deps.fetch(url, { ...init, signal: attempt.signal })
    // A `fetch` that the caller provided may not observe the signal.
    if (options.signal?.aborted) {
      response.body?.cancel().catch(() => {})
      throw options.signal.reason
    }
    if (response.ok) return { response, value: await read(response, attempt) }
    if (isAlreadyDeleted(request, response, number)) {
      return { response, value: await read(new Response(null, { status: 204 }), attempt) }
    }
    const { text } = await readWhole(response, attempt)
    return { response, error: parseApiError(response, text, connection.deps.now()) }
  } catch (error) {
    attempt.end()
    const converted = attempt.toError(error)
    if (!(converted instanceof EvConnectionError)) throw converted
    return { response, error: converted }
  }
}

function buildUrl(baseUrl: string, { path, query = {} }: Request): string {
  const present = Object.entries(query).filter(([, value]) => value !== undefined && value !== null)
  if (present.length === 0) return baseUrl + path
  const pairs = present.flatMap(([name, value]): [string, string][] =>
    // Records are sent as `name[key]=value`, lists as a comma-separated value.
    typeof value === 'object' && !Array.isArray(value)
      ? Object.entries(value).map(([key, one]) => [`${name}[${key}]`, String(one)])
      : [[name, String(value)]],
  )
  return `${baseUrl}${path}?${new URLSearchParams(pairs)}`
}

function buildInit(
  { headers }: ConnectionOptions,
  { method, accept, body }: Request,
  key: string | null,
): RequestInit {
  const isForm = body instanceof FormData
  return {
    method,
    headers: {
      ...headers,
      ...(accept === undefined ? {} : { accept }),
      ...(body === undefined || isForm ? {} : { 'content-type': 'application/json' }),
      ...(key === null ? {} : { 'idempotency-key': key }),
    },
    ...(body === undefined ? {} : { body: isForm ? body : JSON.stringify(body) }),
    // The key must not be sent to the target of a redirect.
    redirect: 'manual',
  }
}

function idempotencyKeyFor({ idempotencyKey }: CreateOptions, deps: ClientDeps): string {
  if (idempotencyKey === undefined) return newKey(deps)
  if (/^[\x20-\x7e]{1,255}$/.test(idempotencyKey)) return idempotencyKey
  throw new TypeError('idempotencyKey must be 1 to 255 printable ASCII characters.')
}

/** Generates 128 random bits in hex. */
const newKey = ({ random }: ClientDeps) =>
  Array.from({ length: 4 }, () =>
    Math.floor(random() * 2 ** 32)
      .toString(16)
      .padStart(8, '0'),
  ).join('')

const toResponseInfo = (
  { method, path }: Request,
  { status, headers }: Response,
  attempt: number,
): ResponseInfo => ({
  method,
  path,
  status,
  attempt,
  requestId: headers.get('x-request-id'),
  rateLimit: parseRateLimit(headers),
  replayed: headers.get('idempotency-replayed') === 'true',
})

const asFailure = (error: EvApiError | EvConnectionError) =>
  error instanceof EvApiError ? error : { status: null, code: null, retryAfterMs: null }

/** A 404 on a retried DELETE: an earlier attempt deleted it, but its response was lost. */
const isAlreadyDeleted = ({ method }: Request, { status }: Response, attempt: number) =>
  method === 'DELETE' && attempt > 0 && status === 404

/** A failed attempt. */
type Failure = {
  /** Null if no complete response arrived. */
  readonly status: number | null
  readonly code: string | null
  readonly retryAfterMs: number | null
}

/** Returns the wait before the next attempt; null to give up. `attempt` counts from 0. */
function retryDelayMs(
  failure: Failure,
  o: { attempt: number; retries: number; random: () => number },
): number | null {
  if (o.attempt >= o.retries || !isTransient(failure)) return null
  const { retryAfterMs } = failure
  // An earlier retry would be refused again, so a Retry-After that is too long ends the call.
  if (retryAfterMs !== null && retryAfterMs > RETRY_AFTER_MAX_MS) return null
  const backOffMs = Math.min(BACK_OFF_MAX_MS, BACK_OFF_MS * 2 ** o.attempt)
  // Full jitter: clients that failed together must not retry together, even with equal Retry-After.
  const jitterMs = o.random() * (retryAfterMs === null ? backOffMs : BACK_OFF_MS)
  return Math.round((retryAfterMs ?? 0) + jitterMs)
}

/** Whether the same request may succeed later. */
const isTransient = ({ status, code }: Failure) =>
  status === null ||
  TRANSIENT_STATUSES.has(status) ||
  // An earlier attempt, whose response was lost, is still in progress.
  code === 'idempotency_in_progress'

/** Retryable status codes. 501 and 505 are permanent. */
const TRANSIENT_STATUSES: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504])

const BACK_OFF_MS = 500
const BACK_OFF_MAX_MS = 8_000
/** Longest Retry-After: limits per minute are waited for, limits per hour or day are reported. */
const RETRY_AFTER_MAX_MS = 60_000
