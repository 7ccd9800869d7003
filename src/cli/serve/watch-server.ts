import {
  connectionLimits,
  PROXIED_KEEP_ALIVE_MS,
  SERVER_LIMITS,
  type ServerLimits,
} from '../../api/server/limits.ts'
import { type RefusalDeps, startingResponse } from '../../api/server/reject.ts'
import { type HttpServer, type ServerDeps, startServer } from '../../api/server/server.ts'
import type { Config } from '../../config/settings.ts'
import { hostPort } from '../../config/values.ts'
import { thisMachine } from '../../doctor/machine.ts'
import { errorMessage } from '../../platform/error.ts'
import { writeLog } from '../../platform/log.ts'
import type { CliContext } from '../context.ts'
import { EXIT_CODES } from '../exit.ts'
import { onStopSignal, type StopSignal, sayStopping } from '../stop-signals.ts'
import { CLI_LOG } from '../telemetry.ts'
import type { ServeLog } from './log.ts'

type WatchServerDeps = {
  readonly context: CliContext
  readonly config: Config
  readonly log: ServeLog
  /** Headers of responses that are sent without the app. */
  readonly headers: (ip: string) => Record<string, string>
}

/** Returns the app; null while the service is starting. */
type GetApp = () => { readonly fetch: ServerDeps['fetch'] } | null

/** Returns the dependencies that the API server and the metrics server share. */
export function serverDeps(
  { context, config, log, headers }: WatchServerDeps,
  app: GetApp,
): Omit<ServerDeps, 'host' | 'port' | 'certificate' | 'mayBePlain'> {
  const { clock, random } = context
  const limits = limitsOf(config)
  const refusals = { clock, random, headers, limits }
  return {
    ...refusals,
    log,
    fetch: (request, bindings) => app()?.fetch(request, bindings) ?? starting(request, refusals),
  }
}

/** Starts the plain HTTP server of health and metrics; null if no port is configured for it. */
export async function startWatchServer(
  deps: WatchServerDeps,
  app: GetApp,
): Promise<HttpServer | null> {
  const { metricsListen } = deps.config
  if (metricsListen === null) return null
  const { host, port } = hostPort(metricsListen)
  const server = await startServer({
    ...serverDeps(deps, app),
    host,
    port,
    certificate: null,
    mayBePlain: () => true,
  })
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${server.port}`
  writeLog(deps.log, CLI_LOG.healthAt, {}, url)
  return server
}

function limitsOf({ trustProxy }: Config): ServerLimits {
  const keepAliveMs = trustProxy.length > 0 ? PROXIED_KEEP_ALIVE_MS : SERVER_LIMITS.keepAliveMs
  return { ...SERVER_LIMITS, keepAliveMs, ...connectionLimits(thisMachine.openFilesMax) }
}

/** Responds before the app exists. `/livez` succeeds, as a worker may wait long for a service. */
function starting(request: Request, deps: RefusalDeps): Response {
  if (new URL(request.url).pathname === '/livez') return Response.json({ status: 'ok' })
  return startingResponse(deps)
}

type StopRequest = {
  /** Resolves with the first SIGTERM or SIGINT. */
  readonly received: Promise<void>
  /** Removes the signal listeners. */
  dispose(): void
}

/**
 * Waits for the first SIGTERM or SIGINT. Says so on a terminal, whatever the log level is, and logs
 * it elsewhere. A second signal exits at once.
 */
export function untilSignal(context: CliContext, log: ServeLog, what: string): StopRequest {
  const { promise: received, resolve } = Promise.withResolvers<void>()
  const stop = (signal: StopSignal) => {
    if (context.stderr.isTTY === true) sayStopping(context, what)
    else writeLog(log, CLI_LOG.stopping, { signal }, what)
    resolve()
  }
  const dispose = onStopSignal(context, stop, signal => exitNow(context, log, signal))
  return { received, dispose }
}

function exitNow(context: CliContext, log: ServeLog, signal: StopSignal): never {
  writeLog(log, CLI_LOG.forcedExit, { signal })
  log.flush()
  context.exit(EXIT_CODES.interrupted)
}

/**
 * Exits after `ms` if the shutdown takes longer, as when the database is unavailable. Its leases
 * then expire, and other members take over. Returns a function that cancels the exit.
 */
export function exitAfter(context: CliContext, ms: number, log: ServeLog): () => void {
  return context.clock.after(ms, () => {
    writeLog(log, CLI_LOG.slowExit)
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
    writeLog(log, CLI_LOG.internalError, { why: errorMessage(error), stack })
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

/** Redirects the console, which libraries use, to the log. Stdout is reserved for the first key. */
export function redirectConsole(context: Pick<CliContext, 'console'>, log: ServeLog): void {
  const debug = (...args: unknown[]) => log.debug(args.map(errorMessage).join(' '))
  const warn = (...args: unknown[]) => log.warn(args.map(errorMessage).join(' '))
  Object.assign(context.console, { log: debug, info: debug, debug, warn, error: warn })
}
