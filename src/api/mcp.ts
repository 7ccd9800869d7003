import type { OpenAPIHono } from '@hono/zod-openapi'
import type { McpHttpHandler } from '@modelcontextprotocol/server'
import type { Context } from 'hono'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { EvClient } from '../client/client.ts'
import { createServiceBackend } from '../mcp/service-backend.ts'
import { orOnAbort } from '../platform/abort.ts'
import { sleep } from '../platform/clock.ts'
import { errorMessage } from '../platform/error.ts'
import { writeLog } from '../platform/log.ts'
import { TtlMap } from '../platform/ttl-map.ts'
import type { ApiDeps } from './api-deps.ts'
import type { Env } from './context.ts'
import { answerError } from './errors/errors.ts'
import { requestError } from './errors/request-errors.ts'
import { admit, type RateLimitDeps } from './middleware/rate-limit.ts'
import { FORWARDING_HEADERS } from './request-context.ts'
import { newRouter } from './route.ts'
import { DEFAULT_HTTP_TIMINGS } from './service.ts'
import { API_LOG } from './telemetry.ts'

type McpDeps = Pick<
  ApiDeps,
  'capacity' | 'clock' | 'guard' | 'log' | 'random' | 'settings' | 'timings'
> &
  RateLimitDeps

const PATH = '/mcp'

/**
 * 10,000 addresses take about 300 KB. Up to this size, a body needs no place of a large list (see
 * `limitLargeLists`), so a call may wait with it in memory.
 */
const BODY_MAX = 1024 * 1024
/** The addresses, and the envelope of the protocol. */
const BODY_VALUES_MAX = 20_000

/**
 * The Model Context Protocol over Streamable HTTP. Each POST is served on its own, without a session,
 * so any member of a cluster may get it. A tool calls the HTTP API in this process with the key of
 * the request: scopes, limits, credits and tenants are those of the API, and so are log and metrics.
 *
 * GET and DELETE are for sessions and streams that this server does not have: they get 405, as the
 * protocol demands.
 */
export function mcpRoutes(service: McpDeps, app: Pick<OpenAPIHono<Env>, 'fetch'>) {
  const router = newRouter()
  const calls = runningCalls(service)
  router.onError((error, c) => answerRpcError(c, service, error))
  router.post(
    PATH,
    service.guard({
      target: `POST ${PATH}`,
      scope: null,
      counts: null,
      isCounted: false,
      isVerification: true,
      body: { kind: 'json', bytesMax: BODY_MAX, valuesMax: BODY_VALUES_MAX },
      schemas: null,
      beforeKey: checkOrigin(service),
    })(async c => {
      const body = c.get('json')
      // The rest is waiting, and work of requests of its own.
      if (c.env?.outgoing !== undefined) service.capacity.admissions.leave(c.env.outgoing)
      // The requests of a tool are counted instead.
      if (!isMessage(body, 'tools/call')) {
        await admit(c, service, { caller: c.get('caller'), counts: null, mayBeFree: false })
      }
      if (isMessage(body, 'initialize')) c.header(SESSION, service.random.token(SESSION_LENGTH))
      if (isMessage(body, 'notifications/cancelled')) calls.cancel(c, body)
      const request = new Request(c.req.url, {
        method: c.req.method,
        headers: c.req.raw.headers,
        signal: AbortSignal.any([c.req.raw.signal, calls.start(c, body)]),
      })
      const handler = await createHandler(c, service, app)
      return toAnswer(c, await handler.fetch(request, { parsedBody: body }))
    }),
  )
  return router
}

/**
 * Refuses requests that a page of another site sends: without this, a page could reach a service on
 * the visitor's machine by DNS rebinding (MCP, "Streamable HTTP", security warning). Pages on
 * loopback, such as an inspector, are programs of the user. Other clients send no Origin.
 */
function checkOrigin({ settings }: McpDeps): (c: Context<Env>) => void {
  const own = new URL(settings.baseUrl).origin
  return c => {
    const origin = c.req.header('Origin')
    if (origin !== undefined && origin !== own && !isLoopback(origin)) {
      throw requestError('origin_not_allowed', { origin, path: PATH, own })
    }
  }
}

function isLoopback(origin: string): boolean {
  const hostname = URL.canParse(origin) ? new URL(origin).hostname : ''
  return LOOPBACK_HOSTS.has(hostname)
}

const LOOPBACK_HOSTS = new Set(['localhost', '127.0.0.1', '[::1]'])

type Message = { readonly method: string; readonly id?: unknown; readonly params?: unknown }

const isMessage = (body: unknown, method: string): body is Message =>
  isObject(body) && body.method === method

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null

/**
 * The header that names a client in protocols before 2026-07-28. Nothing is stored under it: it
 * only tells apart requests of several clients that have the same key and ID.
 */
const SESSION = 'Mcp-Session-Id'
/** 103 bits of entropy. */
const SESSION_LENGTH = 20

/**
 * Running calls of tools, which a client of these protocols cancels by another request. If another
 * member of a cluster gets that request, the call runs to its end, which takes seconds.
 */
function runningCalls({ clock, timings = DEFAULT_HTTP_TIMINGS }: McpDeps) {
  const calls = new TtlMap<AbortController>({ sizeMax: CALLS_MAX, clock })
  const keyFor = (c: Context<Env>, id: unknown) => {
    const session = c.req.header(SESSION)
    return session === undefined ? null : JSON.stringify([c.get('caller').key.id, session, id])
  }
  return {
    /** Returns a signal that aborts when the client cancels the call. */
    start(c: Context<Env>, body: unknown): AbortSignal {
      const controller = new AbortController()
      const key = isMessage(body, 'tools/call') ? keyFor(c, body.id) : null
      if (key !== null) calls.set(key, controller, timings.mcp.answerMs)
      return controller.signal
    },
    cancel(c: Context<Env>, { params }: Message): void {
      const key = isObject(params) ? keyFor(c, params.requestId) : null
      if (key !== null) calls.get(key)?.abort()
    },
  }
}

/** Calls that can be cancelled at the same time; the oldest is forgotten first. */
const CALLS_MAX = 10_000

async function createHandler(
  c: Context<Env>,
  service: McpDeps,
  app: Pick<OpenAPIHono<Env>, 'fetch'>,
): Promise<McpHttpHandler> {
  // Loaded at the first request: it takes a tenth of a second, and most services never need it.
  const { createHttpHandler } = await import('../mcp/http-handler.ts')
  const { clock, log, settings, timings = DEFAULT_HTTP_TIMINGS } = service
  return createHttpHandler({
    backend: createServiceBackend(createClient(c, service, app)),
    clock,
    version: settings.version,
    timings: timings.mcp,
    bodyMax: BODY_MAX,
    onRefused: error => writeLog(log, API_LOG.mcpRequestRefused, { why: errorMessage(error) }),
  })
}

/** Headers of a request that its calls of the API have too. */
const FORWARDED = ['Authorization', 'X-EV-Sandbox', 'Origin', 'Referer', ...FORWARDING_HEADERS]

/** Returns a client that calls the API in this process as the sender of a request. */
function createClient(
  c: Context<Env>,
  { clock, random, settings }: McpDeps,
  app: Pick<OpenAPIHono<Env>, 'fetch'>,
): EvClient {
  const bindings = { incoming: { socket: c.env?.incoming?.socket } }
  return new EvClient({
    baseUrl: settings.baseUrl,
    // It never leaves this process.
    allowHttp: true,
    // Replaced by the key of the request, which the guard has accepted.
    apiKey: 'forwarded',
    // A refused call is answered at once: the model can read when to try again.
    retries: 0,
    now: () => clock.now(),
    sleep: (ms, signal) => sleep(clock, ms, signal),
    random: () => random.below(RANDOM_MAX) / RANDOM_MAX,
    async fetch(url, init) {
      const headers = new Headers(init.headers)
      for (const name of FORWARDED) {
        const value = c.req.header(name)
        if (value !== undefined) headers.set(name, value)
      }
      const request = new Request(url, { ...init, headers })
      const answer = Promise.resolve(app.fetch(request, bindings))
      const response = await orOnAbort(answer, request.signal, null)
      if (response !== null) return response
      void answer.then(({ body }) => body?.cancel()).catch(() => {})
      throw request.signal.reason
    },
  })
}

/** Steps between 0 and 1: as many as fit in a part of an idempotency key. */
const RANDOM_MAX = 2 ** 32

/** Headers of a response of the protocol; the others are those of every response. */
const ANSWER_HEADERS = ['Content-Type', 'X-Accel-Buffering']

function toAnswer(c: Context<Env>, response: Response): Response {
  for (const name of ANSWER_HEADERS) {
    const value = response.headers.get(name)
    if (value !== null) c.header(name, value)
  }
  const status = response.status as ContentfulStatusCode
  return response.body === null ? c.body(null, status) : c.body(response.body, status)
}

/** Answers a request that is refused before the protocol: an error of JSON-RPC without an ID. */
async function answerRpcError(c: Context<Env>, { log }: McpDeps, thrown: unknown) {
  const answer = answerError(c, log, thrown)
  const { error, code, request_id } = (await answer.json()) as Record<string, string>
  const rpc = { code: SERVER_ERROR, message: error, data: { code, request_id } }
  return c.body(
    JSON.stringify({ jsonrpc: '2.0', error: rpc, id: null }),
    answer.status as ContentfulStatusCode,
    { 'Content-Type': 'application/json' },
  )
}

/** The first of the codes that JSON-RPC 2.0 leaves to servers (§5.1). */
const SERVER_ERROR = -32_000
