import { mkdirSync } from 'node:fs'
import { listAccounts } from '../../accounts/account-store.ts'
import { createFirstAccount } from '../../accounts/first-account.ts'
import {
  type Certificate,
  type Renewal,
  readCertificate,
  watchCertificate,
} from '../../api/server/certificate.ts'
import { type HttpServer, startServer } from '../../api/server/server.ts'
import type { Service } from '../../api/service.ts'
import { listFiles } from '../../compose/engine.ts'
import { composeService, type HttpService } from '../../compose/service.ts'
import type { Config } from '../../config/settings.ts'
import { openDatabase } from '../../db/database.ts'
import { canDecrypt } from '../../db/encrypted-values.ts'
import { acquireLock, type Lock, SERVE_LOCK } from '../../db/file-lock.ts'
import { type ListLoader, openLists } from '../../engine/lists.ts'
import { SECOND } from '../../platform/clock.ts'
import { EvError, errorMessage } from '../../platform/error.ts'
import { type Log, throttledLog } from '../../platform/log.ts'
import { logNotify, type Notify } from '../../webhooks/alerts/mail-transport.ts'
import { smtpNotify } from '../../webhooks/alerts/smtp-transport.ts'
import type { CliContext } from '../context.ts'
import { databaseUrl, isShared } from '../database.ts'
import { heloHint, readConfig } from '../settings.ts'
import { reloadOnSighup } from '../sighup.ts'
import { version } from '../version.ts'
import { agreeOnBaseUrl } from './base-url.ts'
import { baseUrlOf, type ListenAddress, listenAddress, placeOf } from './listen-address.ts'
import { type ServeLog, serveLog } from './log.ts'
import { agreeOnSecret } from './shared-secret.ts'
import {
  catchPrints,
  exitAfter,
  exitOnFault,
  serverDeps,
  startWatchServer,
  untilSignal,
} from './watch-server.ts'

export type ServeFlags = { readonly [setting: string]: unknown }

/** How long what was asked may take to be answered, once we are told to stop. */
const GRACE_MS = 15 * SECOND

/** And then to write what is not written yet, and to leave those that share its database. */
const CLOSING_MS = 3 * SECOND

/** Runs `ev serve` and returns the exit code. */
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

/** How notices leave: by a mail server, in our name; null: they are lines of the log. */
type MailTransport = { readonly url: string; readonly from: string } | null

/** Reads it from the settings. Throws EvError('bad_config') where half of it is missing. */
export function mailTransport({ notifySmtp, notifyFrom, notifyTo }: Config): MailTransport {
  if (notifySmtp !== null && notifyFrom !== null) return { url: notifySmtp, from: notifyFrom }
  if (notifySmtp !== null) {
    throw halfOf('--notify-smtp', '--notify-from', 'the address that notices come from')
  }
  const given = notifyFrom !== null ? '--notify-from' : notifyTo !== null ? '--notify-to' : null
  if (given === null) return null
  throw halfOf(given, '--notify-smtp', 'the mail server that takes them')
}

/** The door that they leave by. */
const notifyBy = (way: MailTransport, log: Log): Notify =>
  way === null ? logNotify(log) : smtpNotify(way)

const halfOf = (given: string, missing: string, what: string) =>
  new EvError(
    'bad_config',
    `Notices by mail need a server and a sender: ${given} is there, ${missing} is not. Give ${what} with ${missing}, or leave both out: notices are lines of the log then.`,
  )

type StartupState = Pick<Service, 'database' | 'log' | 'secretBox'> & {
  readonly settings: Pick<Service['settings'], 'plans'>
}

/** Warns at the start of what works otherwise than its operator will think: after a restore, or with another config file. */
export async function logStartupWarnings({
  database,
  log,
  secretBox,
  settings,
}: StartupState): Promise<void> {
  const accounts = await listAccounts(database)
  const orphans = accounts.filter(({ plan }) => !settings.plans.has(plan))
  for (const { id, plan } of orphans.slice(0, NAMED_MAX)) {
    log.warn(
      `there is no plan “${plan}” any more: the account is held to the plan free. Add it to "plans" in the config file, or give the account another with “ev accounts set-plan”`,
      { accountId: id },
    )
  }
  if (await canDecrypt(database, secretBox)) return
  log.warn(
    'the secret is not the one that was there before: secrets of webhooks cannot be read with it, nor answers to Idempotency-Keys. Put back the file “secret” of the data directory, or what EV_SECRET or EV_SECRET_FILE was',
  )
}

/** More say nothing new. */
const NAMED_MAX = 10

type Banner = {
  /** Where it listens, as a URL. */
  readonly place: string
  /** Where clients find it. */
  readonly baseUrl: string
  readonly isPlain: boolean
  /** The text of the first key, at the first start. */
  readonly key: string | null
  /** The path of the page that shows the key once; null: there is none. */
  readonly path: string | null
  /** A note about our own name, where that is needed. */
  readonly hint: string | null
}

/** Says where the service listens and what to do first; the key goes to stdout alone, and only now. */
function printBanner(
  context: CliContext,
  log: ServeLog,
  { place, baseUrl, isPlain, key, path, hint }: Banner,
): void {
  const say = (text: string) =>
    log.isPretty ? void context.stderr.write(`${text}\n`) : log.info(text)
  if (hint !== null) say(hint)
  log.info(`listening on ${place}`, { baseUrl, tls: !isPlain })
  if (isPlain)
    say('This is plain HTTP: for trying out, and for proxies that speak TLS with clients.')
  if (key !== null) {
    context.stdout.write(`${key}\n`)
    say(
      'The first key is printed on stdout, this once. It may do everything: export EV_KEY=ev_live_…',
    )
  }
  if (path === null) say(`Dashboard: ${baseUrl}/`)
  else say(`Dashboard: ${baseUrl}${path} shows the key and signs you in, once, within an hour.`)
  say(curl(baseUrl))
  say(`All paths: ${baseUrl}/docs`)
}

const curl = (baseUrl: string) =>
  `One address: curl -s ${baseUrl}/v1/verify/single -H "Authorization: Bearer $EV_KEY" ` +
  `-H 'Content-Type: application/json' -d '{"email": "user@example.com"}'`
