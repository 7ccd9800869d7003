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
import { errorMessage } from '../../platform/error.ts'
import type { CliContext } from '../context.ts'
import { EXIT_CODES } from '../exit.ts'
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

/** The end of a service that was told to stop. */
type StopSignal = {
  /** Resolves with the first signal to end. */
  readonly received: Promise<void>
  /** Listens no longer. */
  dispose(): void
}

/** Hears the first signal to end, and says what comes then; a second one ends the process at once. */
export function untilSignal(context: CliContext, log: ServeLog, says: string): StopSignal {
  const { promise: received, resolve } = Promise.withResolvers<void>()
  let isSignaled = false
  const onSignal = (signal: NodeJS.Signals) => {
    if (isSignaled) exitNow(context, log, signal)
    isSignaled = true
    log.info(`stopping: ${says}`, { signal })
    resolve()
  }
  context.signals.on('SIGTERM', onSignal)
  context.signals.on('SIGINT', onSignal)
  return {
    received,
    dispose() {
      context.signals.off('SIGTERM', onSignal)
      context.signals.off('SIGINT', onSignal)
    },
  }
}

function exitNow(context: CliContext, log: ServeLog, signal: NodeJS.Signals): never {
  log.warn('ended at once', { signal })
  log.flush()
  context.exit(EXIT_CODES.interrupted)
}

/**
 * Ends the process when what it still had to do takes longer, as where its database is away: others find out by
 * themselves what it had. Gives what calls that off.
 */
export function exitAfter(context: CliContext, ms: number, log: ServeLog): () => void {
  return context.clock.after(ms, () => {
    log.warn('ended before all was given back: others take it up when they notice')
    log.flush()
    context.exit(0)
  })
}

/**
 * Exits on an uncaught exception, because the state of the process is unknown afterwards; a service
 * manager restarts it. Returns a function that removes the listeners.
 */
export function exitOnFault(context: CliContext, log: ServeLog): () => void {
  const end = (error: unknown) => {
    const stack = error instanceof Error ? error.stack : undefined
    log.error('a fault inside ev ends it', { why: errorMessage(error), stack })
    log.flush()
    context.exit(EXIT_CODES.internal)
  }
  context.signals.on('unhandledRejection', end)
  context.signals.on('uncaughtException', end)
  return () => {
    context.signals.off('unhandledRejection', end)
    context.signals.off('uncaughtException', end)
  }
}

/** What libraries print goes to the log: stdout is for the first key alone. */
export function catchPrints(context: Pick<CliContext, 'console'>, log: ServeLog): void {
  const quiet = (...said: unknown[]) => log.debug(said.map(errorMessage).join(' '))
  const loud = (...said: unknown[]) => log.warn(said.map(errorMessage).join(' '))
  Object.assign(context.console, { log: quiet, info: quiet, debug: quiet, warn: loud, error: loud })
}
