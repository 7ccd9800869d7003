import type { HttpServer } from '../../api/server/server.ts'
import { listFiles } from '../../compose/engine.ts'
import { composeWorker, type MonitoredWorker, type WorkerServices } from '../../compose/worker.ts'
import type { Config } from '../../config/settings.ts'
import { openDatabase } from '../../db/database.ts'
import { type ListLoader, openLists } from '../../engine/lists.ts'
import { SECOND } from '../../platform/clock.ts'
import { EvError } from '../../platform/error.ts'
import { throttledLog, writeLog } from '../../platform/log.ts'
import { type CliContext, externalDepsFrom, version } from '../context.ts'
import { databaseName, databaseUrl, isShared } from '../database-location.ts'
import { fitToOpenFiles } from '../open-files.ts'
import { checkSharedSecret } from '../service-secret.ts'
import { heloHint, readConfig } from '../settings.ts'
import { reloadOnSighup } from '../sighup.ts'
import { CLI_LOG } from '../telemetry.ts'
import { waitForBaseUrl } from './base-url.ts'
import { type ServeLog, serveLog } from './log.ts'
import {
  exitAfter,
  exitOnFault,
  redirectConsole,
  startWatchServer,
  untilSignal,
} from './watch-server.ts'

type WorkerFlags = { readonly [setting: string]: unknown }

/** How long releasing the claims may take. By then, other members notice a missing member too. */
export const STOP_MS_MAX = 15 * SECOND

/** Runs a worker until a signal to stop. */
export async function runWorker(context: CliContext, flags: WorkerFlags): Promise<void> {
  const config = readConfig(context, flags)
  if (!isShared(config)) throw notShared(config)
  const lists = openLists(listFiles(config))
  const log = serveLog(context, config)
  const removeFaultListeners = exitOnFault(context, log)
  try {
    redirectConsole(context, log)
    await work({ context, config, lists, flags, log })
  } finally {
    log.flush()
    removeFaultListeners()
  }
}

type WorkerRun = {
  readonly context: CliContext
  readonly config: Config
  readonly lists: ListLoader
  readonly flags: WorkerFlags
  readonly log: ServeLog
}

async function work({ context, config, lists, flags, log }: WorkerRun): Promise<void> {
  const stopping = new AbortController()
  const stopSignal = untilSignal(context, log, 'releasing claims')
  const received = stopSignal.received.then(() => stopping.abort())
  try {
    await workUntil(received, { context, config, lists, flags, log }, stopping.signal)
  } finally {
    stopSignal.dispose()
  }
  writeLog(log, CLI_LOG.stopped)
}

async function workUntil(
  received: Promise<void>,
  { context, config, lists, flags, log }: WorkerRun,
  stopping: AbortSignal,
): Promise<void> {
  let services: MonitoredWorker | null = null
  // From the start: without a listener, SIGHUP ends a process.
  const stopReloading = reloadOnSighup(context, lists, flags, log)
  const deps = { context, config, log, headers: () => ({}) }
  let watch: HttpServer | null = null
  try {
    watch = await startWatchServer(deps, () => services?.watch ?? null)
    const baseUrl = await joinService(context, config, log, stopping)
    if (baseUrl === null) return
    const externalDeps = externalDepsFrom(context, throttledLog(log, context.clock))
    const run = { databaseUrl: databaseUrl(config), baseUrl, version: version(), lists }
    // The environment may be shared with services that run with --work off.
    const fitting = fitToOpenFiles(config, text => log.warn(text))
    services = await composeWorker({ ...fitting, work: true }, externalDeps, run)
    logStart(log, config, { member: services.member(), baseUrl })
    await received
    await stop(context, services, log)
  } finally {
    await watch?.stop(0)
    stopReloading()
  }
}

/** Checks the secret and returns the base URL for events; null if the worker is stopped before. */
async function joinService(
  context: CliContext,
  config: Config,
  log: ServeLog,
  stopping: AbortSignal,
): Promise<string | null> {
  const database = await openDatabase(databaseUrl(config), context.clock)
  try {
    await checkSharedSecret(context, database, config)
    return await waitForBaseUrl(database, {
      clock: context.clock,
      log: throttledLog(log, context.clock),
      stopping,
    })
  } finally {
    await database.close()
  }
}

function logStart(
  log: ServeLog,
  config: Config,
  identity: { readonly member: string | null; readonly baseUrl: string },
): void {
  const hint = heloHint(config)
  if (hint !== null) log.info(hint)
  const egresses = config.egresses.map(({ name }) => name).join(', ')
  writeLog(log, CLI_LOG.workerStarted, { ...identity, egresses, concurrency: config.concurrency })
}

async function stop(context: CliContext, services: WorkerServices, log: ServeLog): Promise<void> {
  const cancelExit = exitAfter(context, STOP_MS_MAX, log)
  services.stopSoon()
  await services.close()
  cancelExit()
}

const notShared = (config: Config) =>
  new EvError(
    'bad_config',
    `A worker needs the PostgreSQL database of "ev serve", and ${databaseName(config)} can be used by one process only. Set EV_DATABASE=postgres://USER:PASSWORD@HOST/NAME in the environment of both.`,
  )
