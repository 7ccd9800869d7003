import { type Attempt, startAttempt } from './attempt.ts'
import type { ClientDeps } from './deps.ts'
import { EvApiError, EvConnectionError } from './error.ts'
import { apiErrorOf, type RateLimit, rateLimitOf, readJson } from './response.ts'
import { watched } from './stream.ts'

/** What is said of a single call. */
export type CallOptions = {
  /** Ends the call, its waits and its stream; the call rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined
  /** For each attempt; of a stream: until it begins, and then for each piece. */
  readonly timeoutMs?: number | undefined
  /** How often it is tried again at most. */
  readonly retries?: number | undefined
}

/** Calls that create something take a key of the caller's too; without one each call makes its own. */
export type CreateOptions = CallOptions & { readonly idempotencyKey?: string | undefined }

export type Request = {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** With its `/v1`, and its parts encoded. */
  readonly path: string
  readonly query?: object | undefined
  /** The type of the answer, where it is not JSON that is wanted. */
  readonly accept?: string
  /** Sent as JSON, or as multipart where it is a form. */
  readonly body?: object | undefined
  /** Whether it must carry an Idempotency-Key, as doing it twice is not the same as doing it once. */
  readonly creates?: boolean
  /** For requests that take their time by nature. */
  readonly timeoutMs?: number | undefined
  /** For how long the service waits on purpose. */
  readonly waitMs?: number | undefined
}

/** What is told of every answer, to whoever wants to log or measure. */
export type Seen = {
  readonly method: Request['method']
  readonly path: string
  readonly status: number
  /** From 0. */
  readonly attempt: number
  readonly requestId: string | null
  readonly rateLimit: RateLimit | null
  /** Whether this is the stored answer to an earlier request with the same Idempotency-Key. */
  readonly replayed: boolean
}

export type ConnectionOptions = {
  readonly deps: ClientDeps
  readonly baseUrl: string
  readonly headers: Readonly<Record<string, string>>
  readonly timeoutMs: number
  readonly retries: number
  readonly onAnswer: (seen: Seen) => void
}

/** Sends requests, each until it is answered or not worth trying again. */
export type Connection = {
  json<T>(request: Request, options?: CreateOptions): Promise<T>
  stream(request: Request, options?: CallOptions): Promise<ReadableStream<Uint8Array>>
}

export function createConnection(connection: ConnectionOptions): Connection {
  return {
    async json<T>(request: Request, options: CreateOptions = {}) {
      const { response, text } = await persist(connection, request, options, readWhole)
      return readJson(response, text) as T
    },
    stream: (request, options = {}) => persist(connection, request, options, readPieces),
  }
}

/** Takes what an answer brings, while the attempt's time still runs. */
type Read<T> = (response: Response, attempt: Attempt) => Promise<T>

const readWhole: Read<{ response: Response; text: string }> = async (response, attempt) => {
  const text = await response.text()
  attempt.end()
  return { response, text }
}

const readPieces: Read<ReadableStream<Uint8Array>> = async (response, attempt) => {
  attempt.pause()
  if (response.body === null) {
    attempt.end()
    return new ReadableStream({ start: controller => controller.close() })
  }
  return watched(response.body, attempt)
}

async function persist<T>(
  connection: ConnectionOptions,
  request: Request,
  options: CreateOptions,
  read: Read<T>,
): Promise<T> {
  const { deps } = connection
  const retries = options.retries ?? connection.retries
  // One key for all attempts: that is what makes them one.
  const key = request.creates ? keyOf(options, deps) : null
  const url = urlOf(connection.baseUrl, request)
  const init = initOf(connection, request, key)
  for (let number = 0; ; number++) {
    options.signal?.throwIfAborted()
    const outcome = await tryOnce(connection, { request, options, url, init, number, read })
    if (outcome.response !== null) connection.onAnswer(seenOf(request, outcome.response, number))
    if ('got' in outcome) return outcome.got
    const pauseMs = waitMs(asFailure(outcome.error), {
      attempt: number,
      retries,
      random: deps.random,
    })
    if (pauseMs === null) throw outcome.error
    await deps.sleep(pauseMs, options.signal)
  }
}

type Try<T> = {
  readonly request: Request
  readonly options: CreateOptions
  readonly url: string
  readonly init: RequestInit
  readonly number: number
  readonly read: Read<T>
}

/** What an attempt brought; null where nobody answered. */
type Outcome<T> = { readonly response: Response | null } & (
  | { readonly got: T }
  | { readonly error: EvApiError | EvConnectionError }
)

/** One attempt; throws only the caller's own reason to leave. */
async function tryOnce<T>(
  connection: ConnectionOptions,
  { request, options, url, init, number, read }: Try<T>,
): Promise<Outcome<T>> {
  const timeoutMs =
    (options.timeoutMs ?? request.timeoutMs ?? connection.timeoutMs) + (request.waitMs ?? 0)
  const attempt = startAttempt(connection.deps, timeoutMs, options.signal)
  let response: Response | null = null
  try {
    response = await connection.deps.fetch(url, { ...init, signal: attempt.signal })
    if (response.ok) return { response, got: await read(response, attempt) }
    if (wasDoneBefore(request, response, number)) {
      return { response, got: await read(new Response(null, { status: 204 }), attempt) }
    }
    const { text } = await readWhole(response, attempt)
    return { response, error: apiErrorOf(response, text, connection.deps.now()) }
  } catch (error) {
    attempt.end()
    const fault = attempt.faultOf(error)
    if (!(fault instanceof EvConnectionError)) throw fault
    return { response, error: fault }
  }
}

function urlOf(baseUrl: string, { path, query = {} }: Request): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null)
  if (given.length === 0) return baseUrl + path
  // A list is one value, with commas.
  const pairs = given.map(([name, value]): [string, string] => [name, String(value)])
  return `${baseUrl}${path}?${new URLSearchParams(pairs)}`
}

function initOf(
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
    // The key must not travel to wherever a redirect points.
    redirect: 'manual',
  }
}

function keyOf({ idempotencyKey }: CreateOptions, deps: ClientDeps): string {
  if (idempotencyKey === undefined) return newKey(deps)
  if (/^[\x20-\x7e]{1,255}$/.test(idempotencyKey)) return idempotencyKey
  throw new TypeError('idempotencyKey takes 1 to 255 characters of ASCII.')
}

/** 128 bits, in hex. */
const newKey = ({ random }: ClientDeps) =>
  Array.from({ length: 4 }, () =>
    Math.floor(random() * 2 ** 32)
      .toString(16)
      .padStart(8, '0'),
  ).join('')

const seenOf = (
  { method, path }: Request,
  { status, headers }: Response,
  attempt: number,
): Seen => ({
  method,
  path,
  status,
  attempt,
  requestId: headers.get('x-request-id'),
  rateLimit: rateLimitOf(headers),
  replayed: headers.get('idempotency-replayed') === 'true',
})

const asFailure = (error: EvApiError | EvConnectionError) =>
  error instanceof EvApiError ? error : { status: null, code: null, retryAfterMs: null }

/** What is gone at the second attempt went with the first one, whose answer was lost. */
const wasDoneBefore = ({ method }: Request, { status }: Response, attempt: number) =>
  method === 'DELETE' && attempt > 0 && status === 404

/** What became of one attempt that brought nothing. */
type Failure = {
  /** Null: no answer came, or not all of it. */
  readonly status: number | null
  readonly code: string | null
  readonly retryAfterMs: number | null
}

/** How long to wait before the next attempt; null: there is none. `attempt` counts from 0. */
function waitMs(
  failure: Failure,
  o: { attempt: number; retries: number; random: () => number },
): number | null {
  if (o.attempt >= o.retries || !isPassing(failure)) return null
  const asked = failure.retryAfterMs
  // Asking sooner than told would be refused again, so a wait that is too long ends the call.
  if (asked !== null && asked > RETRY_AFTER_MAX_MS) return null
  const backOffMs = Math.min(BACK_OFF_MAX_MS, BACK_OFF_MS * 2 ** o.attempt)
  // Full jitter: clients that failed together do not come back together, even where all were told the same second.
  return Math.round((asked ?? 0) + o.random() * (asked === null ? backOffMs : BACK_OFF_MS))
}

/** Whether the same request may fare better later. */
const isPassing = ({ status, code }: Failure) =>
  status === null ||
  PASSING.has(status) ||
  // The attempt before, of which we saw no answer, is still at work.
  code === 'idempotency_in_progress'

/** 408: the request came too slowly. 501 and 505 stay as they are. */
const PASSING: ReadonlySet<number> = new Set([408, 429, 500, 502, 503, 504])

const BACK_OFF_MS = 500
const BACK_OFF_MAX_MS = 8_000
/** A limit by the minute is waited out, one by the hour or the day is told to the caller. */
const RETRY_AFTER_MAX_MS = 60_000
