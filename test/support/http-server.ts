import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { connect as connectTls } from 'node:tls'
import { Hono } from 'hono'
import { onTestFinished } from 'vitest'
import type { Certificate } from '../../src/api/server/certificate.ts'
import { SERVER_LIMITS, type ServerLimits } from '../../src/api/server/limits.ts'
import type { ListenerDeps, MayBePlain } from '../../src/api/server/listener.ts'
import { type HttpServer, startServer } from '../../src/api/server/server.ts'
import { systemClock } from '../../src/platform/clock.ts'
import { type Log, silentLog } from '../../src/platform/log.ts'
import { systemRandom } from '../../src/platform/random.ts'
import type { FakeClock } from './clock.ts'

export type TestHttpServer = HttpServer & {
  /** Sends bytes and returns everything received until the server closes the connection. */
  send(...parts: readonly (string | Uint8Array)[]): Promise<string>
  /** Opens a connection, which is destroyed after the test. */
  open(): Promise<Socket>
  /** Paths of the requests that reached the app. */
  readonly asked: string[]
}

export type TestHttpServerOptions = {
  /**
   * Overrides of the production limits. A test shortens only the one that it is about: with a
   * general short limit, a busy machine would lose connections that the test needs.
   */
  readonly limits?: Partial<ServerLimits>
  /** Clock of the timeouts of the server. Those of Node (headers, idle) run in real time. */
  readonly clock?: FakeClock
  readonly certificate?: Certificate
  readonly mayBePlain?: MayBePlain
  readonly admission?: ListenerDeps['admission']
  readonly headers?: ListenerDeps['headers']
  readonly log?: Log
  readonly host?: string
  readonly port?: number
  /** Adds paths to the app. */
  readonly paths?: (app: Hono) => void
}

/**
 * Starts a server on loopback with a small app: /ok returns a constant, /echo the length of the
 * body. A body has the time of a list below /list.
 */
export async function openHttpServer(options: TestHttpServerOptions = {}): Promise<TestHttpServer> {
  const asked: string[] = []
  const server = await startServer({
    fetch: appOf(asked, options.paths).fetch,
    clock: options.clock ?? systemClock,
    random: systemRandom,
    log: options.log ?? silentLog,
    limits: { ...SERVER_LIMITS, ...options.limits },
    headers: options.headers ?? (() => ({ 'x-ratelimit-limit': '100' })),
    mayBePlain: options.mayBePlain ?? (() => true),
    takesList: ({ url = '' }) => url.startsWith('/list'),
    ...(options.admission && { admission: options.admission }),
    host: options.host ?? '127.0.0.1',
    port: options.port ?? 0,
    certificate: options.certificate ?? null,
  })
  onTestFinished(async () => {
    const stopped = server.stop(0)
    await options.clock?.advance(0)
    await stopped
  })
  const open = async () => {
    const socket =
      options.certificate === undefined
        ? connect(server.port, '127.0.0.1')
        : connectTls({ port: server.port, host: '127.0.0.1', rejectUnauthorized: false })
    socket.on('error', () => {})
    onTestFinished(() => void socket.destroy())
    await once(socket, options.certificate === undefined ? 'connect' : 'secureConnect')
    return socket
  }
  const send = async (...parts: readonly (string | Uint8Array)[]) => {
    const socket = await open()
    for (const part of parts) socket.write(part)
    return text(socket)
  }
  return { ...server, open, send, asked }
}

function appOf(asked: string[], paths: TestHttpServerOptions['paths']): Hono {
  const app = new Hono()
  app.use(async (c, next) => {
    asked.push(c.req.path)
    await next()
  })
  for (const path of ['/echo', '/list']) {
    app.post(path, async c => c.json({ bytes: (await c.req.arrayBuffer()).byteLength }))
  }
  app.get('/ok', c => c.json({ ok: true }))
  app.notFound(c => c.json({ code: 'not_found' }, 404))
  app.onError((_, c) => c.json({ code: 'server_error' }, 500))
  paths?.(app)
  return app
}

export type Answer = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly json: Readonly<Record<string, unknown>>
}

/** Parses one response with a JSON body and a Content-Length; `rest` is what follows it. */
export function parseAnswer(received: string): Answer & { readonly rest: string } {
  const [head = '', ...bodies] = received.split('\r\n\r\n')
  const [first = '', ...lines] = head.split('\r\n')
  const headers = Object.fromEntries(
    lines.map(line => [
      line.slice(0, line.indexOf(':')).toLowerCase(),
      line.slice(line.indexOf(':') + 2),
    ]),
  )
  const body = bodies.join('\r\n\r\n')
  const length = Number(headers['content-length'])
  return {
    status: Number(first.split(' ')[1]),
    headers,
    json: JSON.parse(body.slice(0, length)),
    rest: body.slice(length),
  }
}
