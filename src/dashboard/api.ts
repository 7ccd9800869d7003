import type { Context } from 'hono'
import type { ErrorBody } from '../client/types.ts'
import type { AskingSession, DashboardDeps, Env } from './deps.ts'

export type AskOptions = {
  /** GET when left out, POST where there is a body. */
  readonly method?: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** What is undefined or null is left out. */
  readonly query?: Readonly<Record<string, string | number | boolean | undefined | null>>
  /** Sent as JSON. */
  readonly body?: object
  readonly sandbox?: boolean
  /** Of a form that is sent twice, as by a double click, only one has an effect: both are answered as that one is. */
  readonly once?: string | undefined
}

/** Our own HTTP API, asked as the key of a session: its scopes, limits and errors are those of everybody. */
export interface Api {
  /** The body of the answer, of a type from `client/types.ts`; throws ApiProblem where the API says no. */
  ask<T>(path: string, options?: AskOptions): Promise<T>
  /** The answer as it comes, a refusal too: for files and streams. */
  fetch(path: string, init?: RequestInit): Promise<Response>
}

/** The API said no; `message` is its sentence. */
export class ApiProblem extends Error {
  override readonly name = 'ApiProblem'
  readonly status: number
  readonly code: ErrorBody['code']

  constructor(status: number, { error, code }: Pick<ErrorBody, 'error' | 'code'>) {
    super(/[.!?…]$/.test(error) ? error : `${error}.`)
    this.status = status
    this.code = code
  }
}

/** The API for one request to the dashboard: what it asks counts for its client's address, and ends with its client. */
export function apiFor(
  c: Context<Env>,
  { app, settings }: Pick<DashboardDeps, 'app' | 'settings'>,
  { keyId, sessionId, secretExpiresAt }: AskingSession,
): Api {
  // Of what came in only from where it came: whether it had a body, and how long, says nothing of what is asked here.
  const session = { keyId, sessionId, secretExpiresAt }
  const bindings = { incoming: { socket: c.env?.incoming?.socket }, session }
  const fetch = async (path: string, init: RequestInit = {}) => {
    const headers = new Headers(init.headers)
    headers.set('Origin', new URL(settings.baseUrl).origin)
    const forwarded = c.req.header('X-Forwarded-For')
    if (forwarded !== undefined) headers.set('X-Forwarded-For', forwarded)
    const request = new Request(`${settings.baseUrl}${path}`, {
      signal: c.req.raw.signal,
      ...init,
      headers,
    })
    return app.fetch(request, bindings)
  }
  return { fetch, ask: (path, options = {}) => ask(fetch, path, options) }
}

async function ask<T>(fetch: Api['fetch'], path: string, o: AskOptions): Promise<T> {
  const answer = await fetch(`${path}${queryOf(o.query)}`, {
    method: o.method ?? (o.body === undefined ? 'GET' : 'POST'),
    headers: {
      ...(o.body !== undefined && { 'Content-Type': 'application/json' }),
      ...(o.sandbox && { 'X-EV-Sandbox': 'true' }),
      ...(o.once !== undefined && { 'Idempotency-Key': o.once }),
    },
    ...(o.body !== undefined && { body: JSON.stringify(o.body) }),
  })
  if (!answer.ok) throw await problemOf(answer)
  // A deletion is answered without a body.
  return (answer.status === 204 ? undefined : await answer.json()) as T
}

/** What an answer that is not 2xx says. */
export async function problemOf(answer: Response): Promise<ApiProblem> {
  return new ApiProblem(answer.status, (await answer.json()) as ErrorBody)
}

/** As it stands behind a path: with its question mark, or empty. */
export function queryOf(query: AskOptions['query'] = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null)
  const text = new URLSearchParams(
    given.map(([name, value]): [string, string] => [name, String(value)]),
  ).toString()
  return text === '' ? '' : `?${text}`
}

/** Headers of an answer that say what its body is. */
const OF_BODY = ['Content-Type', 'Content-Disposition', 'X-Accel-Buffering']

/** Passes an answer of the API on as it comes: a file, or events. Throws ApiProblem where the API says no. */
export async function proxy(c: Context<Env>, answer: Response): Promise<Response> {
  if (!answer.ok) throw await problemOf(answer)
  for (const name of OF_BODY) {
    const value = answer.headers.get(name)
    if (value !== null) c.header(name, value)
  }
  return c.body(answer.body === null ? '' : unchangedHeaders(c, answer.body))
}

/** An answer that breaks off ends its connection, or what is cut short would look whole. */
function unchangedHeaders(
  c: Context<Env>,
  body: ReadableStream<Uint8Array>,
): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read()
          if (done) controller.close()
          else controller.enqueue(value)
        } catch (error) {
          c.env?.outgoing?.destroy()
          controller.error(error)
        }
      },
      cancel: reason => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
}
