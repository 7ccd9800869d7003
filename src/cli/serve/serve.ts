import { mkdirSync } from 'node:fs'
import { createFirstAccount } from '../../accounts/first-account.ts'
import { SECOND } from '../../base/clock.ts'
import { EvError, messageOf } from '../../base/error.ts'
import { calmLog } from '../../base/log.ts'
import type { Config } from '../../config/settings.ts'
import { type Lists, openLists } from '../../engine/lists.ts'
import { type HttpServer, startServer } from '../../http/server/server.ts'
import { type Certificate, readCertificate } from '../../http/server/tls/certificate.ts'
import { type Renewal, watchCertificate } from '../../http/server/tls/renewal.ts'
import { openDatabase } from '../../store/database.ts'
import { type Lock, lockJob, SERVE_LOCK } from '../../store/lock.ts'
import { listPlan } from '../../wire.ts'
import { type ServiceHouse, wireService } from '../../wire-service.ts'
import { agreeOnBaseUrl } from '../cluster/base-url.ts'
import { agreeOnSecret } from '../cluster/secret.ts'
import type { CliContext } from '../context.ts'
import { databaseUrl, isShared } from '../database.ts'
import { reloadOnHangup } from '../hangup.ts'
import { helloHint, readConfig } from '../settings/settings.ts'
import { version } from '../version.ts'
import { warnOfConcerns } from './concerns.ts'
import { baseUrlOf, type Door, doorOf, placeOf } from './door.ts'
import { catchPrints, endAfter, endOnFault, untilTold } from './ending.ts'
import { type ServeLog, serveLog } from './log.ts'
import { type MailWay, mailWayOf, notifyBy } from './mail.ts'
import { serverParts, startWatchServer } from './watch-server.ts'
import { welcome } from './welcome.ts'

export type ServeFlags = { readonly [setting: string]: unknown }

/** How long what was asked may take to be answered, once we are told to stop. */
const GRACE_MS = 15 * SECOND

/** And then to write what is not written yet, and to leave those that share its database. */
const CLOSING_MS = 3 * SECOND

/** `ev serve`: gives the code to exit with. */
export async function serveCommand(context: CliContext, flags: ServeFlags): Promise<number> {
  const config = readConfig(context, flags)
  refuseIdleness(config)
  const door = doorOf(config)
  const mailWay = mailWayOf(config)
  const certificate = door.files === null ? null : readCertificate(door.files)
  const lists = openLists(listPlan(config))
  const lock = lockOrThrow(config)
  const log = serveLog(context, config)
  const endFaults = endOnFault(context, log)
  const ending = untilTold(context, log, 'what was asked is answered first')
  try {
    catchPrints(context, log)
    await serve({
      told: ending.told,
      context,
      config,
      door,
      mailWay,
      certificate,
      lists,
      flags,
      log,
    })
    return 0
  } finally {
    lock.release()
    log.flush()
    ending.dispose()
    endFaults()
  }
}

type Parts = {
  /** Resolves when the service is told to end. */
  readonly told: Promise<void>
  readonly context: CliContext
  readonly config: Config
  readonly door: Door
  readonly mailWay: MailWay
  readonly certificate: Certificate | null
  readonly lists: Lists
  readonly flags: ServeFlags
  readonly log: ServeLog
}

async function serve(parts: Parts): Promise<void> {
  const { told, context, config, door, mailWay, certificate, flags, lists, log } = parts
  let house: ServiceHouse | null = null
  const deps = { context, config, log, headers: (ip: string) => house?.headers(ip) ?? {} }
  const server = await startServer({
    ...serverParts(deps, () => house?.app ?? null),
    ...{ host: door.host, port: door.port, certificate, mayBePlain: door.mayBePlain },
    crowdFault: request => house?.crowdFault(request) ?? null,
  })
  const servers = [server]
  let renewal: Renewal | null = null
  let callOff = () => {}
  try {
    const byItself = baseUrlOf(config, door, server.port)
    const baseUrl = await agreeWithOthers(context, config, byItself, log)
    const notify = notifyBy(mailWay, log)
    const calm = calmLog(log, context.clock)
    const doors = {
      clock: context.clock,
      random: context.random,
      log: calm,
      notify,
      ...context.doors,
    }
    const url = databaseUrl(config)
    house = await wireService(config, doors, {
      ...{ databaseUrl: url, baseUrl, version: version(), lists },
    })
    const watch = await startWatchServer(deps, () => house?.watch ?? null)
    if (watch !== null) servers.push(watch)
    await warnOfConcerns(house.service)
    const { plans } = house.service.settings
    const key = await createFirstAccount(house.service, { plan: config.plan, plans })
    if (door.files !== null && certificate !== null) {
      const own = { clock: context.clock, log }
      renewal = watchCertificate(door.files, certificate, own, one => server.renew(one))
    }
    const endReloads = reloadOnHangup(context, lists, flags, log, () => renewal?.look())
    const place = placeOf(door, server.port)
    const isPlain = door.files === null
    // The address opens the account for who reads it first: it is for a terminal, not for a log.
    const path = key !== null && context.stderr.isTTY ? house.offerKey(key) : null
    welcome(context, log, { place, baseUrl, isPlain, key, path, hint: helloHint(config) })
    await told
    endReloads()
    if (isShared(config)) callOff = endAfter(context, GRACE_MS + CLOSING_MS, log)
  } finally {
    renewal?.stop()
    await stop(house, servers)
    callOff()
  }
  log.info('stopped')
}

async function stop(house: ServiceHouse | null, servers: readonly HttpServer[]): Promise<void> {
  house?.stopSoon()
  await Promise.all(servers.map(server => server.stop(house === null ? 0 : GRACE_MS)))
  await house?.close()
}

/** What those that share a database must have in common; gives our address for clients. */
async function agreeWithOthers(
  context: CliContext,
  config: Config,
  byItself: string,
  log: ServeLog,
): Promise<string> {
  if (!isShared(config)) return byItself
  const database = await openDatabase(databaseUrl(config), context.clock)
  try {
    await agreeOnSecret(context, database, config, log)
    return await agreeOnBaseUrl(database, { given: config.baseUrl, byItself }, log)
  } finally {
    await database.close()
  }
}

/** A file is worked on by one process alone: lists would wait for ever. */
function refuseIdleness(config: Config): void {
  if (config.work || isShared(config)) return
  throw new EvError(
    'bad_config',
    'With --work off nobody would work on lists: the database is a file of this machine. Leave it out, or name a database that workers share (--database postgres://…).',
  )
}

/** Two services would answer from the same data without knowing of one another's limits, lists and uploads. */
function lockOrThrow(config: Config): Lock {
  const { dataDir } = config
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  } catch (cause) {
    throw new EvError(
      'io',
      `The data directory ${dataDir} cannot be made: ${messageOf(cause)}. Name another place with --data-dir.`,
      { cause },
    )
  }
  const lock = lockJob(dataDir, SERVE_LOCK)
  if (lock !== null) return lock
  const remedy = isShared(config)
    ? 'Several may share the database, but not that directory: give each its own with --data-dir.'
    : 'Stop that one first, or name another place with --data-dir.'
  throw new EvError('io', `Another ev serve is at work in ${dataDir}. ${remedy}`)
}
