import { mkdirSync } from 'node:fs'
import { createFirstAccount } from '../../accounts/first-account.ts'
import { type Certificate, readCertificate } from '../../api/server/certificate.ts'
import { type Renewal, watchCertificate } from '../../api/server/renewal.ts'
import { type HttpServer, startServer } from '../../api/server/server.ts'
import { listFiles } from '../../compose/engine.ts'
import { composeService, type HttpService } from '../../compose/service.ts'
import type { Config } from '../../config/settings.ts'
import { openDatabase } from '../../db/database.ts'
import { acquireLock, type Lock, SERVE_LOCK } from '../../db/file-lock.ts'
import { type ListLoader, openLists } from '../../engine/lists.ts'
import { SECOND } from '../../platform/clock.ts'
import { EvError, errorMessage } from '../../platform/error.ts'
import { throttledLog } from '../../platform/log.ts'
import type { CliContext } from '../context.ts'
import { databaseUrl, isShared } from '../database.ts'
import { heloHint, readConfig } from '../settings.ts'
import { reloadOnSighup } from '../sighup.ts'
import { version } from '../version.ts'
import { printBanner } from './banner.ts'
import { agreeOnBaseUrl } from './base-url.ts'
import { baseUrlOf, type ListenAddress, listenAddress, placeOf } from './listen-address.ts'
import { type ServeLog, serveLog } from './log.ts'
import { type MailTransport, mailTransport, notifyBy } from './mail.ts'
import { agreeOnSecret } from './shared-secret.ts'
import { catchPrints, exitAfter, exitOnFault, untilSignal } from './shutdown.ts'
import { logStartupWarnings } from './startup-warnings.ts'
import { serverDeps, startWatchServer } from './watch-server.ts'

export type ServeFlags = { readonly [setting: string]: unknown }

/** How long what was asked may take to be answered, once we are told to stop. */
const GRACE_MS = 15 * SECOND

/** And then to write what is not written yet, and to leave those that share its database. */
const CLOSING_MS = 3 * SECOND

/** `ev serve`: gives the code to exit with. */
export async function serveCommand(context: CliContext, flags: ServeFlags): Promise<number> {
  const config = readConfig(context, flags)
  refuseIdleness(config)
  const address = listenAddress(config)
  const mailWay = mailTransport(config)
  const certificate = address.files === null ? null : readCertificate(address.files)
  const lists = openLists(listFiles(config))
  const lock = lockOrThrow(config)
  const log = serveLog(context, config)
  const endFaults = exitOnFault(context, log)
  const ending = untilSignal(context, log, 'what was asked is answered first')
  try {
    catchPrints(context, log)
    await serve({
      received: ending.received,
      context,
      config,
      address,
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

type ServeRun = {
  /** Resolves when the service is told to end. */
  readonly received: Promise<void>
  readonly context: CliContext
  readonly config: Config
  readonly address: ListenAddress
  readonly mailWay: MailTransport
  readonly certificate: Certificate | null
  readonly lists: ListLoader
  readonly flags: ServeFlags
  readonly log: ServeLog
}

async function serve(run: ServeRun): Promise<void> {
  const { received, context, config, address, mailWay, certificate, flags, lists, log } = run
  let services: HttpService | null = null
  const deps = { context, config, log, headers: (ip: string) => services?.headers(ip) ?? {} }
  const server = await startServer({
    ...serverDeps(deps, () => services?.app ?? null),
    ...{ host: address.host, port: address.port, certificate, mayBePlain: address.mayBePlain },
    overloadError: request => services?.overloadError(request) ?? null,
  })
  const servers = [server]
  let renewal: Renewal | null = null
  let callOff = () => {}
  try {
    const byItself = baseUrlOf(config, address, server.port)
    const baseUrl = await agreeWithOthers(context, config, byItself, log)
    const notify = notifyBy(mailWay, log)
    const calm = throttledLog(log, context.clock)
    const externalDeps = {
      clock: context.clock,
      random: context.random,
      log: calm,
      notify,
      ...context.externalDeps,
    }
    const url = databaseUrl(config)
    services = await composeService(config, externalDeps, {
      ...{ databaseUrl: url, baseUrl, version: version(), lists },
    })
    const watch = await startWatchServer(deps, () => services?.watch ?? null)
    if (watch !== null) servers.push(watch)
    await logStartupWarnings(services.service)
    const { plans } = services.service.settings
    const key = await createFirstAccount(services.service, { plan: config.plan, plans })
    if (address.files !== null && certificate !== null) {
      const own = { clock: context.clock, log }
      renewal = watchCertificate(address.files, certificate, own, one => server.renew(one))
    }
    const endReloads = reloadOnSighup(context, lists, flags, log, () => renewal?.look())
    const place = placeOf(address, server.port)
    const isPlain = address.files === null
    // The address opens the account for who reads it first: it is for a terminal, not for a log.
    const path = key !== null && context.stderr.isTTY ? services.offerKey(key) : null
    printBanner(context, log, { place, baseUrl, isPlain, key, path, hint: heloHint(config) })
    await received
    endReloads()
    if (isShared(config)) callOff = exitAfter(context, GRACE_MS + CLOSING_MS, log)
  } finally {
    renewal?.stop()
    await stop(services, servers)
    callOff()
  }
  log.info('stopped')
}

async function stop(services: HttpService | null, servers: readonly HttpServer[]): Promise<void> {
  services?.stopSoon()
  await Promise.all(servers.map(server => server.stop(services === null ? 0 : GRACE_MS)))
  await services?.close()
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
      `The data directory ${dataDir} cannot be made: ${errorMessage(cause)}. Name another place with --data-dir.`,
      { cause },
    )
  }
  const lock = acquireLock(dataDir, SERVE_LOCK)
  if (lock !== null) return lock
  const remedy = isShared(config)
    ? 'Several may share the database, but not that directory: give each its own with --data-dir.'
    : 'Stop that one first, or name another place with --data-dir.'
  throw new EvError('io', `Another ev serve is at work in ${dataDir}. ${remedy}`)
}
