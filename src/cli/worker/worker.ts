import { SECOND, systemClock } from '../../base/clock.ts'
import { EvError } from '../../base/error.ts'
import { calmLog } from '../../base/log.ts'
import { systemRandom } from '../../base/random.ts'
import type { Config } from '../../config/settings.ts'
import { type Lists, openLists } from '../../engine/lists.ts'
import { openDatabase } from '../../store/database.ts'
import { listPlan } from '../../wire.ts'
import { type WorkerHouse, wireWorker } from '../../wire-work.ts'
import { baseUrlOfService } from '../cluster/base-url.ts'
import { compareSecret } from '../cluster/secret.ts'
import { databaseUrl, isShared, placeName } from '../database.ts'
import { reloadOnHangup } from '../hangup.ts'
import { catchPrints, endAfter, endOnFault, untilTold } from '../serve/ending.ts'
import { type ServeLog, serveLog } from '../serve/log.ts'
import { helloHint, readConfig } from '../settings/settings.ts'
import { version } from '../version.ts'

export type WorkerFlags = { readonly [setting: string]: unknown }

/** How long it may take to give back what is in hand; others notice a member that is gone by then too. */
const GRACE_MS = 15 * SECOND

/** `ev worker`: gives the code to exit with. */
export async function workerCommand(flags: WorkerFlags): Promise<number> {
  const config = readConfig(flags)
  if (!isShared(config)) throw notShared(config)
  const lists = openLists(listPlan(config))
  const log = serveLog(config)
  try {
    endOnFault(log)
    catchPrints(log)
    await work({ config, lists, flags, log })
    return 0
  } finally {
    log.flush()
  }
}

type Parts = {
  readonly config: Config
  readonly lists: Lists
  readonly flags: WorkerFlags
  readonly log: ServeLog
}

async function work({ config, lists, flags, log }: Parts): Promise<void> {
  const stopping = new AbortController()
  const told = untilTold(log, 'what is in hand goes back').then(() => stopping.abort())
  const baseUrl = await agreeWithService(config, log, stopping.signal)
  if (baseUrl !== null) {
    const doors = { clock: systemClock, random: systemRandom, log: calmLog(log, systemClock) }
    const parts = { databaseUrl: databaseUrl(config), baseUrl, version: version(), lists }
    // Servers and workers may have one environment, and that of servers may say that they are not to work.
    const house = await wireWorker({ ...config, work: true }, doors, parts)
    const endReloads = reloadOnHangup(lists, flags, log)
    sayStart(log, config, { member: house.member(), baseUrl })
    await told
    endReloads()
    await stop(house, log)
  }
  log.info('stopped')
}

/** Gives the address of the service, which stands in the events of its jobs; null: told to stop before it was known. */
async function agreeWithService(
  config: Config,
  log: ServeLog,
  stopping: AbortSignal,
): Promise<string | null> {
  const database = await openDatabase(databaseUrl(config), systemClock)
  try {
    await compareSecret(database, config)
    return await baseUrlOfService(database, {
      ...{ clock: systemClock, log: calmLog(log, systemClock), stopping },
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

async function stop(house: WorkerHouse, log: ServeLog): Promise<void> {
  const cancel = endAfter(GRACE_MS, log)
  house.stopSoon()
  await house.close()
  cancel()
}

const notShared = (config: Config) =>
  new EvError(
    'bad_config',
    `A worker shares the database of “ev serve”, and ${placeName(config)} is for one process alone. Name a PostgreSQL database for both, in the environment as EV_DATABASE=postgres://USER:PASSWORD@HOST/NAME.`,
  )
