import { listAccounts } from '../../accounts/account-store.ts'
import { createFirstAccount } from '../../accounts/first-account.ts'
import type { Plan } from '../../accounts/plan.ts'
import {
  type Certificate,
  type Renewal,
  readCertificate,
  watchCertificate,
} from '../../api/server/certificate.ts'
import { type HttpServer, startServer } from '../../api/server/server.ts'
import { listFiles } from '../../compose/engine.ts'
import { composeService, type HttpService } from '../../compose/service.ts'
import type { Config } from '../../config/settings.ts'
import { type Database, openDatabase } from '../../db/database.ts'
import { fileOf } from '../../db/database-url.ts'
import {
  acquireLock,
  databaseLock,
  type Lock,
  refuseHardLinks,
  SERVE_LOCK,
} from '../../db/file-lock.ts'
import { canDecrypt } from '../../db/service-secret.ts'
import { type ListLoader, openLists } from '../../engine/lists.ts'
import { SECOND } from '../../platform/clock.ts'
import { createDirectory } from '../../platform/directory.ts'
import { EvError, errorMessage } from '../../platform/error.ts'
import { type Log, throttledLog, writeLog } from '../../platform/log.ts'
import type { SecretBox } from '../../platform/secret-box.ts'
import { createLogTransport, type Notify } from '../../webhooks/mail-transport.ts'
import { createSmtpTransport } from '../../webhooks/smtp-transport.ts'
import { type CliContext, version } from '../context.ts'
import { databaseUrl, isShared } from '../database-location.ts'
import { fitToOpenFiles } from '../open-files.ts'
import { ensureSharedSecret } from '../service-secret.ts'
import { heloHint, readConfig } from '../settings.ts'
import { reloadOnSighup } from '../sighup.ts'
import { CLI_LOG } from '../telemetry.ts'
import { PLAIN_HTTP, printBanner } from './banner.ts'
import {
  deriveBaseUrl,
  type ListenAddress,
  listenAddress,
  listenUrl,
  shareBaseUrl,
} from './base-url.ts'
import { type ServeLog, serveLog } from './log.ts'
import {
  exitAfter,
  exitOnFault,
  redirectConsole,
  serverDeps,
  startWatchServer,
  untilSignal,
} from './watch-server.ts'

type ServeFlags = { readonly [setting: string]: unknown }

/** How long requests in flight may take after the signal to stop. */
const GRACE_MS = 15 * SECOND

/** How long it may then take to write pending data and to deregister from the cluster. */
const CLOSING_MS = 3 * SECOND

/** Service managers must allow this time before they kill the process. */
export const STOP_MS_MAX = GRACE_MS + CLOSING_MS

/** Runs the service until a signal to stop. */
export async function runService(context: CliContext, flags: ServeFlags): Promise<void> {
  const config = readConfig(context, flags)
  checkWorkSetting(config)
  const address = listenAddress(config)
  const mail = mailTransport(config)
  const certificate = address.files === null ? null : readCertificate(address.files)
  const lists = openLists(listFiles(config))
  const lock = lockOrThrow(config)
  const log = serveLog(context, config)
  const removeFaultListeners = exitOnFault(context, log)
  const stopSignal = untilSignal(context, log, 'finishing requests in flight')
  try {
    redirectConsole(context, log)
    await serve({
      received: stopSignal.received,
      context,
      config,
      address,
      mail,
      certificate,
      lists,
      flags,
      log,
    })
  } finally {
    lock.release()
    log.flush()
    stopSignal.dispose()
    removeFaultListeners()
  }
}

type ServeRun = {
  /** Resolves with the signal to stop. */
  readonly received: Promise<void>
  readonly context: CliContext
  readonly config: Config
  readonly address: ListenAddress
  readonly mail: MailTransport
  readonly certificate: Certificate | null
  readonly lists: ListLoader
  readonly flags: ServeFlags
  readonly log: ServeLog
}

async function serve(run: ServeRun): Promise<void> {
  const { received, context, config, address, mail, certificate, flags, lists, log } = run
  let services: HttpService | null = null
  let renewal: Renewal | null = null
  // From the start: without a listener, SIGHUP ends a process.
  const stopReloading = reloadOnSighup(context, lists, flags, log, () => renewal?.checkNow())
  const deps = { context, config, log, headers: (ip: string) => services?.headers(ip) ?? {} }
  const servers: HttpServer[] = []
  let cancelExit = () => {}
  try {
    const server = await startServer({
      ...serverDeps(deps, () => services?.app ?? null),
      host: address.host,
      port: address.port,
      certificate,
      mayBePlain: address.mayBePlain,
      takesList: request => services?.takesList(request) ?? false,
      admission(request, response, start) {
        if (services !== null) return services.admission(request, response, start)
        start()
        return null
      },
    })
    servers.push(server)
    const derived = deriveBaseUrl(config, address, server.port)
    const baseUrl = await joinDatabase(context, config, derived, log)
    const notify = createNotify(mail, log)
    const externalDeps = {
      clock: context.clock,
      random: context.random,
      log: throttledLog(log, context.clock),
      notify,
      ...context.externalDeps,
    }
    const fitting = fitToOpenFiles(config, text => log.warn(text))
    services = await composeService(fitting, externalDeps, {
      databaseUrl: databaseUrl(config),
      baseUrl,
      version: version(),
      lists,
    })
    const watch = await startWatchServer(deps, () => services?.watch ?? null)
    if (watch !== null) servers.push(watch)
    const { plans } = services.service.settings
    const key = await createFirstAccount(services.service, { plan: config.plan, plans })
    if (address.files !== null && certificate !== null) {
      const renewalDeps = { clock: context.clock, log }
      renewal = watchCertificate(address.files, certificate, renewalDeps, one => server.renew(one))
    }
    const url = listenUrl(address, server.port)
    const isPlain = address.files === null
    // The sign-in link works for its first reader, so print it to a terminal, never to a log.
    const path = key !== null && context.stderr.isTTY ? services.offerKey(key) : null
    const notes = [isPlain ? PLAIN_HTTP : null, heloHint(config)].filter(note => note !== null)
    printBanner(context, log, { url, baseUrl, isPlain, key, path, notes })
    await logStartupWarnings(services.service)
    await received
    if (isShared(config)) cancelExit = exitAfter(context, STOP_MS_MAX, log)
  } finally {
    renewal?.stop()
    await stop(services, servers)
    stopReloading()
    cancelExit()
  }
  writeLog(log, CLI_LOG.stopped)
}

async function stop(services: HttpService | null, servers: readonly HttpServer[]): Promise<void> {
  services?.stopSoon()
  await Promise.all(servers.map(server => server.stop(services === null ? 0 : GRACE_MS)))
  await services?.close()
}

/**
 * Checks the secret that all processes on a shared database must have, and returns the base URL.
 */
async function joinDatabase(
  context: CliContext,
  config: Config,
  derived: string,
  log: ServeLog,
): Promise<string> {
  if (!isShared(config)) return derived
  const database = await openDatabase(databaseUrl(config), context.clock)
  try {
    await ensureSharedSecret(context, database, config, log)
    return await shareBaseUrl(database, { configured: config.baseUrl, derived }, log)
  } finally {
    await database.close()
  }
}

/** Rejects `--work off` without PostgreSQL: no other process could process the lists. */
function checkWorkSetting(config: Config): void {
  if (config.work || isShared(config)) return
  throw new EvError(
    'bad_config',
    'With --work off, no process would process lists, because the database is a local file. Omit it, or set a PostgreSQL database that workers share (--database postgres://…).',
  )
}

/**
 * Locks the data directory and the SQLite file: two services would not know of each other's limits,
 * lists, uploads and credits.
 */
function lockOrThrow(config: Config): Lock {
  const dataDir = lockDataDir(config)
  try {
    const database = isShared(config) ? null : lockDatabase(fileOf(databaseUrl(config)))
    return {
      release() {
        database?.release()
        dataDir.release()
      },
    }
  } catch (error) {
    dataDir.release()
    throw error
  }
}

function lockDatabase(file: string): Lock {
  refuseHardLinks(file)
  const lock = acquireLock(...databaseLock(file))
  if (lock !== null) return lock
  throw new EvError(
    'io',
    `Another "ev serve" is running on the database ${file}. Stop it first, or set another one with --database. Several services can share a PostgreSQL database.`,
  )
}

function lockDataDir(config: Config): Lock {
  const { dataDir } = config
  try {
    createDirectory(dataDir)
  } catch (cause) {
    throw new EvError(
      'io',
      `The data directory ${dataDir} cannot be created: ${errorMessage(cause)}. Set another one with --data-dir.`,
      { cause },
    )
  }
  const lock = acquireLock(dataDir, SERVE_LOCK)
  if (lock !== null) return lock
  const remedy = isShared(config)
    ? 'Services can share a database, but not a data directory. Set another one with --data-dir.'
    : 'Stop it first, or set another data directory with --data-dir.'
  throw new EvError('io', `Another "ev serve" is running in ${dataDir}. ${remedy}`)
}

/** Mail server and sender of alerts; null to write alerts to the log. */
type MailTransport = { readonly url: string; readonly from: string } | null

/** Reads the mail settings. Throws EvError('bad_config') if one of them is missing. */
function mailTransport({ notifySmtp, notifyFrom, notifyTo }: Config): MailTransport {
  if (notifySmtp !== null && notifyFrom !== null) return { url: notifySmtp, from: notifyFrom }
  if (notifySmtp !== null) {
    throw incompleteMail('--notify-smtp', '--notify-from', 'the sender address')
  }
  const present = notifyFrom !== null ? '--notify-from' : notifyTo !== null ? '--notify-to' : null
  if (present === null) return null
  throw incompleteMail(present, '--notify-smtp', 'the mail server')
}

const createNotify = (mail: MailTransport, log: Log): Notify =>
  mail === null ? createLogTransport(log) : createSmtpTransport(mail)

const incompleteMail = (present: string, missing: string, what: string) =>
  new EvError(
    'bad_config',
    `Alerts by email need a mail server and a sender: ${present} is set, ${missing} is not. Set ${what} with ${missing}, or omit both to write alerts to the log.`,
  )

type StartupState = {
  readonly database: Database
  readonly log: Log
  readonly secretBox: SecretBox
  readonly settings: { readonly plans: ReadonlyMap<string, Plan> }
}

/** Warns about unknown plans and a wrong secret, as after a restore or with another config file. */
async function logStartupWarnings({
  database,
  log,
  secretBox,
  settings,
}: StartupState): Promise<void> {
  const accounts = await listAccounts(database)
  const orphans = accounts.filter(({ plan }) => !settings.plans.has(plan))
  for (const { id, plan } of orphans.slice(0, NAMED_MAX)) {
    writeLog(log, CLI_LOG.planMissing, { accountId: id }, plan)
  }
  if (await canDecrypt(database, secretBox)) return
  writeLog(log, CLI_LOG.secretChanged)
}

/** Maximum number of accounts in the warning. */
const NAMED_MAX = 10
