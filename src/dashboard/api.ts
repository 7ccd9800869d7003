import type { Context } from 'hono'
import type { DashboardSession } from '../api/context.ts'
import { FORWARDING_HEADERS } from '../api/request-context.ts'
import type { ErrorBody } from '../client/types.ts'
import type { Api, AskOptions, DashboardDeps, Env } from './deps.ts'

/** An error response of the API; `message` is its text for people who use the dashboard. */
export class ApiProblem extends Error {
  override readonly name = 'ApiProblem'
  readonly status: number
  readonly code: ErrorBody['code']

  constructor(status: number, body: Pick<ErrorBody, 'error' | 'code' | 'reason' | 'remedy'>) {
    const text = describeError(body)
    super(/[.!?…]$/.test(text) ? text : `${text}.`)
    this.status = status
    this.code = body.code
  }
}

/** Returns the text of an error, with the remedy of the dashboard in place of that of the API. */
function describeError({
  error,
  reason = '',
  remedy = '',
}: Pick<ErrorBody, 'error' | 'reason' | 'remedy'>): string {
  const own = REMEDIES[reason]
  return own === undefined || !error.endsWith(remedy)
    ? error
    : `${error.slice(0, error.length - remedy.length).trimEnd()} ${own}`
}

/** Remedies for errors whose remedy in the API names requests or fields, by the reason. */
const REMEDIES: Readonly<Record<string, string>> = {
  webhook_disabled: 'Enable it first.',
  job_not_finishable: 'Resume it first.',
  job_not_resumable: 'Reload the page to see its current status.',
  job_not_list: 'Verify a single address again on the page Verify.',
  concurrent_jobs_exceeded: 'Wait for one to finish, or cancel one.',
  stored_rows_exceeded: 'Delete lists, or wait until old lists are removed.',
  account_streams_exceeded: 'Close another page that shows a list in progress.',
  streams_exceeded: 'Reload the page later.',
  notice_without_email: 'Set one on the page Account.',
  list_too_long: 'Upload it as a file.',
}

/**
 * Creates the API for one dashboard request. Its calls count against the limits of the client's IP
 * address and are aborted when the client disconnects.
 */
export function apiFor(
  c: Context<Env>,
  { app, settings }: Pick<DashboardDeps, 'app' | 'settings'>,
  { keyId, sessionId, secretExpiresAt }: DashboardSession,
): Api {
  // Pass on only the peer of the incoming request: its body and length do not apply to this call.
  const session = { keyId, sessionId, secretExpiresAt }
  const bindings = { incoming: { socket: c.env?.incoming?.socket }, session }
  const fetch = async (path: string, init: RequestInit = {}) => {
    const headers = new Headers(init.headers)
    headers.set('Origin', new URL(settings.baseUrl).origin)
    for (const name of FORWARDING_HEADERS) {
      const value = c.req.header(name)
      if (value !== undefined) headers.set(name, value)
    }
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
  const response = await fetch(`${path}${queryOf(o.query)}`, {
    method: o.method ?? (o.body === undefined ? 'GET' : 'POST'),
    headers: {
      ...(o.body !== undefined && { 'Content-Type': 'application/json' }),
      ...(o.sandbox && { 'X-EV-Sandbox': 'true' }),
      ...(o.once !== undefined && { 'Idempotency-Key': o.once }),
    },
    ...(o.body !== undefined && { body: JSON.stringify(o.body) }),
  })
  if (!response.ok) throw await problemOf(response)
  // A deletion returns 204 without a body.
  return (response.status === 204 ? undefined : await response.json()) as T
}

/** Reads the error of a response that is not 2xx. */
export async function problemOf(response: Response): Promise<ApiProblem> {
  return new ApiProblem(response.status, (await response.json()) as ErrorBody)
}

/** Formats a query string with its leading question mark; empty if there are no parameters. */
export function queryOf(query: AskOptions['query'] = {}): string {
  const present = Object.entries(query).filter(([, value]) => value !== undefined && value !== null)
  const text = new URLSearchParams(
    present.map(([name, value]): [string, string] => [name, String(value)]),
  ).toString()
  return text === '' ? '' : `?${text}`
}

/** Response headers that describe the body. */
const BODY_HEADERS = ['Content-Type', 'Content-Disposition', 'X-Accel-Buffering']

/** Streams a file or events of the API to the browser; throws ApiProblem on an error status. */
export async function proxy(c: Context<Env>, response: Response): Promise<Response> {
  if (!response.ok) throw await problemOf(response)
  for (const name of BODY_HEADERS) {
    const value = response.headers.get(name)
    if (value !== null) c.header(name, value)
  }
  if (c.req.method !== 'HEAD')
    return c.body(response.body === null ? '' : destroyOnError(c, response.body))
  // A response to HEAD has no reader that would take or cancel the body.
  await response.body?.cancel()
  return c.body(null)
}

/** Destroys the connection if the body fails: a truncated file must not look complete. */
function destroyOnError(
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
