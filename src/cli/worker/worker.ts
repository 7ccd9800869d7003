import { SECOND } from '../../base/clock.ts'
import { EvError } from '../../base/error.ts'
import { calmLog } from '../../base/log.ts'
import type { Config } from '../../config/settings.ts'
import { type Lists, openLists } from '../../engine/lists.ts'
import { openDatabase } from '../../store/database.ts'
import { listPlan } from '../../wire.ts'
import { type WatchedWorker, type WorkerHouse, wireWorker } from '../../wire-work.ts'
import { baseUrlOfService } from '../cluster/base-url.ts'
import { compareSecret } from '../cluster/secret.ts'
import { type CliContext, doorsOf } from '../context.ts'
import { databaseUrl, isShared, placeName } from '../database.ts'
import { reloadOnHangup } from '../hangup.ts'
import { catchPrints, endAfter, endOnFault, untilTold } from '../serve/ending.ts'
import { type ServeLog, serveLog } from '../serve/log.ts'
import { startWatchServer } from '../serve/watch-server.ts'
import { helloHint, readConfig } from '../settings/settings.ts'
import { version } from '../version.ts'

export type WorkerFlags = { readonly [setting: string]: unknown }

/** How long it may take to give back what is in hand; others notice a member that is gone by then too. */
const GRACE_MS = 15 * SECOND

/** `ev worker`: gives the code to exit with. */
export async function workerCommand(context: CliContext, flags: WorkerFlags): Promise<number> {
  const config = readConfig(context, flags)
  if (!isShared(config)) throw notShared(config)
  const lists = openLists(listPlan(config))
  const log = serveLog(context, config)
  const endFaults = endOnFault(context, log)
  try {
    catchPrints(context, log)
    await work({ context, config, lists, flags, log })
    return 0
  } finally {
    log.flush()
    endFaults()
  }
}

type Parts = {
  readonly context: CliContext
  readonly config: Config
  readonly lists: Lists
  readonly flags: WorkerFlags
  readonly log: ServeLog
}

async function work({ context, config, lists, flags, log }: Parts): Promise<void> {
  const stopping = new AbortController()
  const ending = untilTold(context, log, 'what is in hand goes back')
  const told = ending.told.then(() => stopping.abort())
  try {
    await workUntil(told, { context, config, lists, flags, log }, stopping.signal)
  } finally {
    ending.dispose()
  }
  log.info('stopped')
}

async function workUntil(
  told: Promise<void>,
  { context, config, lists, flags, log }: Parts,
  stopping: AbortSignal,
): Promise<void> {
  let house: WatchedWorker | null = null
  const deps = { context, config, log, headers: () => ({}) }
  const watch = await startWatchServer(deps, () => house?.watch ?? null)
  try {
    const baseUrl = await agreeWithService(context, config, log, stopping)
    if (baseUrl === null) return
    const doors = doorsOf(context, calmLog(log, context.clock))
    const parts = { databaseUrl: databaseUrl(config), baseUrl, version: version(), lists }
    // Servers and workers may have one environment, and that of servers may say that they are not to work.
    house = await wireWorker({ ...config, work: true }, doors, parts)
    const endReloads = reloadOnHangup(context, lists, flags, log)
    sayStart(log, config, { member: house.member(), baseUrl })
    await told
    endReloads()
    await stop(context, house, log)
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
      ...{ clock: context.clock, log: calmLog(log, context.clock), stopping },
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
  const hint = helloHint(config)
  if (hint !== null) log.info(hint)
  const egresses = config.egresses.map(({ name }) => name).join(', ')
  log.info('at work', { ...is, egresses, concurrency: config.concurrency })
}

async function stop(context: CliContext, house: WorkerHouse, log: ServeLog): Promise<void> {
  const cancel = endAfter(context, GRACE_MS, log)
  house.stopSoon()
  await house.close()
  cancel()
}

const notShared = (config: Config) =>
  new EvError(
    'bad_config',
    `A worker shares the database of “ev serve”, and ${placeName(config)} is for one process alone. Name a PostgreSQL database for both, in the environment as EV_DATABASE=postgres://USER:PASSWORD@HOST/NAME.`,
  )
