import type { Hono } from 'hono'
import type { Env } from '../../api/context.ts'
import {
  connectionLimits,
  PROXIED_KEEP_ALIVE_MS,
  SERVER_LIMITS,
  type ServerLimits,
} from '../../api/server/limits.ts'
import { type HttpServer, type ServerDeps, startServer } from '../../api/server/server.ts'
import type { Config } from '../../config/settings.ts'
import { hostPort } from '../../config/values.ts'
import { thisMachine } from '../../doctor/machine.ts'
import type { CliContext } from '../context.ts'
import type { ServeLog } from './log.ts'

export type WatchServerDeps = {
  readonly context: CliContext
  readonly config: Config
  readonly log: ServeLog
  /** Headers of an answer that comes about without the app. */
  readonly headers: (ip: string) => Record<string, string>
}

/** Null until it can answer. */
type GetApp = () => Pick<Hono<Env>, 'fetch'> | null

/** What the server of the API and that of health and metrics have in common. */
export function serverDeps(
  { context, config, log, headers }: WatchServerDeps,
  app: GetApp,
): Omit<ServerDeps, 'host' | 'port' | 'certificate' | 'mayBePlain'> {
  return {
    ...{ clock: context.clock, random: context.random, log, headers },
    fetch: (request, bindings) => app()?.fetch(request, bindings) ?? starting(request),
    limits: limitsOf(config),
  }
}

/** Starts the server of health and metrics, by plain HTTP; null: the settings name no port for it. */
export async function startWatchServer(
  deps: WatchServerDeps,
  app: GetApp,
): Promise<HttpServer | null> {
  const { metricsListen } = deps.config
  if (metricsListen === null) return null
  const { host, port } = hostPort(metricsListen)
  const server = await startServer({
    ...serverDeps(deps, app),
    ...{ host, port, certificate: null, mayBePlain: () => true },
  })
  const place = `http://${host.includes(':') ? `[${host}]` : host}:${server.port}`
  deps.log.info(`health and metrics on ${place}`)
  return server
}

function limitsOf({ trustProxy }: Config): ServerLimits {
  const keepAliveMs = trustProxy.length > 0 ? PROXIED_KEEP_ALIVE_MS : SERVER_LIMITS.keepAliveMs
  return { ...SERVER_LIMITS, keepAliveMs, ...connectionLimits(thisMachine.openFilesMax) }
}

/** A worker may wait long for the first service: it lives meanwhile. */
function starting(request: Request): Response {
  if (new URL(request.url).pathname === '/livez') return Response.json({ status: 'ok' })
  const body = { success: false, error: 'The service is starting', code: 'service_unavailable' }
  return Response.json(body, { status: 503, headers: { 'Retry-After': '1' } })
}
