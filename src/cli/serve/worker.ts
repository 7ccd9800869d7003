import { listFiles } from '../../compose/engine.ts'
import { composeWorker, type WatchedWorker, type WorkerServices } from '../../compose/worker.ts'
import type { Config } from '../../config/settings.ts'
import { openDatabase } from '../../db/database.ts'
import { type ListLoader, openLists } from '../../engine/lists.ts'
import { SECOND } from '../../platform/clock.ts'
import { EvError } from '../../platform/error.ts'
import { throttledLog } from '../../platform/log.ts'
import { type CliContext, externalDepsFrom } from '../context.ts'
import { databaseName, databaseUrl, isShared } from '../database.ts'
import { heloHint, readConfig } from '../settings.ts'
import { reloadOnSighup } from '../sighup.ts'
import { version } from '../version.ts'
import { baseUrlOfService } from './base-url.ts'
import { type ServeLog, serveLog } from './log.ts'
import { compareSecret } from './shared-secret.ts'
import {
  catchPrints,
  exitAfter,
  exitOnFault,
  startWatchServer,
  untilSignal,
} from './watch-server.ts'

export type WorkerFlags = { readonly [setting: string]: unknown }

/** How long it may take to give back what is in hand; others notice a member that is gone by then too. */
const GRACE_MS = 15 * SECOND

/** Runs `ev worker` and returns the exit code. */
export async function workerCommand(context: CliContext, flags: WorkerFlags): Promise<number> {
  const config = readConfig(context, flags)
  if (!isShared(config)) throw notShared(config)
  const lists = openLists(listFiles(config))
  const log = serveLog(context, config)
  const endFaults = exitOnFault(context, log)
  try {
    catchPrints(context, log)
    await work({ context, config, lists, flags, log })
    return 0
  } finally {
    log.flush()
    endFaults()
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
  const ending = untilSignal(context, log, 'what is in hand goes back')
  const received = ending.received.then(() => stopping.abort())
  try {
    await workUntil(received, { context, config, lists, flags, log }, stopping.signal)
  } finally {
    ending.dispose()
  }
  log.info('stopped')
}

async function workUntil(
  received: Promise<void>,
  { context, config, lists, flags, log }: WorkerRun,
  stopping: AbortSignal,
): Promise<void> {
  let services: WatchedWorker | null = null
  const deps = { context, config, log, headers: () => ({}) }
  const watch = await startWatchServer(deps, () => services?.watch ?? null)
  try {
    const baseUrl = await agreeWithService(context, config, log, stopping)
    if (baseUrl === null) return
    const externalDeps = externalDepsFrom(context, throttledLog(log, context.clock))
    const run = { databaseUrl: databaseUrl(config), baseUrl, version: version(), lists }
    // Servers and workers may have one environment, and that of servers may say that they are not to work.
    services = await composeWorker({ ...config, work: true }, externalDeps, run)
    const endReloads = reloadOnSighup(context, lists, flags, log)
    sayStart(log, config, { member: services.member(), baseUrl })
    await received
    endReloads()
    await stop(context, services, log)
  } finally {
    await watch?.stop(0)
  }
}

/** Gives the address of the service, which stands in the events of its jobs; null: told to stop before it was known. */
async function agreeWithService(
  context: CliContext,
  config: Config,
  log: ServeLog,
  stopping: AbortSignal,
): Promise<string | null> {
  const database = await openDatabase(databaseUrl(config), context.clock)
  try {
    await compareSecret(context, database, config)
    return await baseUrlOfService(database, {
      ...{ clock: context.clock, log: throttledLog(log, context.clock), stopping },
    })
  } finally {
    await database.close()
  }
}

function sayStart(
  log: ServeLog,
  config: Config,
  is: { readonly member: string | null; readonly baseUrl: string },
): void {
  const hint = heloHint(config)
  if (hint !== null) log.info(hint)
  const egresses = config.egresses.map(({ name }) => name).join(', ')
  log.info('at work', { ...is, egresses, concurrency: config.concurrency })
}

async function stop(context: CliContext, services: WorkerServices, log: ServeLog): Promise<void> {
  const cancel = exitAfter(context, GRACE_MS, log)
  services.stopSoon()
  await services.close()
  cancel()
}

const notShared = (config: Config) =>
  new EvError(
    'bad_config',
    `A worker shares the database of “ev serve”, and ${databaseName(config)} is for one process alone. Name a PostgreSQL database for both, in the environment as EV_DATABASE=postgres://USER:PASSWORD@HOST/NAME.`,
  )
