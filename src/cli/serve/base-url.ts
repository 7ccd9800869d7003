import { hostname } from 'node:os'
import type { CertificateFiles } from '../../api/server/certificate.ts'
import type { MayBePlain } from '../../api/server/listener.ts'
import { ensureSetting, getSetting } from '../../cluster/cluster-settings.ts'
import type { Config } from '../../config/settings.ts'
import { hostPort } from '../../config/values.ts'
import { type Database, isStorageError } from '../../db/database.ts'
import { type Clock, SECOND, sleep } from '../../platform/clock.ts'
import { EvError, errorMessage } from '../../platform/error.ts'
import { inRanges, isLoopback, isLoopbackHost } from '../../platform/ip.ts'
import { type Log, writeLog } from '../../platform/log.ts'
import { CLI_LOG } from '../telemetry.ts'

type BaseUrlOptions = {
  /** Value of the setting; null if it is not set. */
  readonly configured: string | null
  /** Derived from the listen address. */
  readonly derived: string
}

/**
 * Returns the base URL that all members of a cluster put into events. A configured value applies to
 * all of them; otherwise it is the derived one of the service that started last.
 */
export async function shareBaseUrl(
  database: Database,
  { configured, derived }: BaseUrlOptions,
  log: Log,
): Promise<string> {
  const stored = await getSetting(database, 'base-url')
  if (configured === null && stored === null) {
    await ensureSetting(database, 'base-url-by-itself', derived)
    return derived
  }
  if (configured === null || configured === stored) return stored as string
  await ensureSetting(database, 'base-url', configured)
  if (stored !== null) {
    writeLog(log, CLI_LOG.baseUrlChanged, {
      before: stored,
      now: configured,
    })
  }
  return configured
}

/** Waits until a service has stored its base URL. Returns null if `stopping` aborts first. */
export async function waitForBaseUrl(
  database: Database,
  { clock, log, stopping }: { clock: Clock; log: Log; stopping: AbortSignal },
): Promise<string | null> {
  for (let polls = 0; !stopping.aborted; polls++) {
    const baseUrl = await storedBaseUrl(database, log)
    if (baseUrl !== null) return baseUrl
    if (polls === 0) writeLog(log, CLI_LOG.waitingForService)
    await sleep(clock, POLL_MS, stopping)
  }
  return null
}

/** Returns the base URL that services have stored in a shared database; null if there is none. */
const findBaseUrl = async (database: Database): Promise<string | null> =>
  (await getSetting(database, 'base-url')) ?? (await getSetting(database, 'base-url-by-itself'))

/** Returns null also while the database is unavailable, so that the caller keeps waiting. */
async function storedBaseUrl(database: Database, log: Log): Promise<string | null> {
  try {
    return await findBaseUrl(database)
  } catch (error) {
    if (!isStorageError(error)) throw error
    writeLog(log, CLI_LOG.databaseNotAvailable, { why: errorMessage(error) })
    return null
  }
}

/** Interval between polls for the base URL of the first service. */
const POLL_MS = SECOND

/** The listen address and its TLS files. */
export type ListenAddress = {
  readonly host: string
  readonly port: number
  /** Null for plain HTTP. */
  readonly files: CertificateFiles | null
  readonly mayBePlain: MayBePlain
}

/**
 * Reads it from the settings. Throws EvError('bad_config') if API keys would be sent in clear text.
 */
export function listenAddress(config: Config): ListenAddress {
  const { host, port } = hostPort(config.listen)
  const files = filesOf(config)
  const isOpen = files === null && !config.insecureHttp && config.trustProxy.length === 0
  if (isOpen && !isLoopbackHost(host)) throw plainToAll(config)
  return { host, port, files, mayBePlain: config.insecureHttp ? () => true : byProxyOf(config) }
}

/**
 * Allows plain HTTP from loopback and trusted proxies, unless the proxy itself received plain HTTP.
 */
function byProxyOf({ trustProxy }: Config): MayBePlain {
  const isProxy = inRanges(trustProxy)
  return (ip, forwardedProto) => (isProxy(ip) ? forwardedProto !== 'http' : isLoopback(ip))
}

/** Returns the URL for clients: the configured one, or one derived from the listen address. */
export function deriveBaseUrl(config: Config, address: ListenAddress, port: number): string {
  if (config.baseUrl !== null) return config.baseUrl
  const isUsual = port === (address.files === null ? 80 : 443)
  return `${schemeOf(address)}://${nameOf(address.host)}${isUsual ? '' : `:${port}`}`
}

/** Returns the URL of the listen address, for log lines. */
export const listenUrl = (address: ListenAddress, port: number) =>
  `${schemeOf(address)}://${bracketed(address.host)}:${port}`

const schemeOf = ({ files }: ListenAddress) => (files === null ? 'http' : 'https')

/** Replaces a wildcard address, to which clients cannot connect, by the host name. */
function nameOf(host: string): string {
  if (host === '0.0.0.0' || /^[0:]+$/.test(host)) return hostname()
  return bracketed(host)
}

const bracketed = (host: string) => (host.includes(':') ? `[${host}]` : host)

function filesOf({ tlsCert, tlsKey }: Config): CertificateFiles | null {
  if (tlsCert !== null && tlsKey !== null) return { cert: tlsCert, key: tlsKey }
  if (tlsCert === null && tlsKey === null) return null
  const [present, missing] =
    tlsCert === null ? ['--tls-key', '--tls-cert'] : ['--tls-cert', '--tls-key']
  throw new EvError(
    'bad_config',
    `TLS needs a certificate and its key: ${present} is set, ${missing} is not. Set both or neither.`,
  )
}

const plainToAll = ({ listen }: Config) =>
  new EvError(
    'bad_config',
    `ev does not serve plain HTTP on ${listen}, because others could read API keys. Set a certificate with --tls-cert ` +
      'and --tls-key, or the addresses of your TLS proxy with --trust-proxy, or allow plain HTTP with --insecure-http ' +
      'on a network where no one else can listen.',
  )

/** Returns the base URL of the service of this database. Throws EvError if it is not known. */
export async function requireBaseUrl(database: Database, { baseUrl }: Config): Promise<string> {
  const found = baseUrl ?? (await findBaseUrl(database))
  if (found !== null) return found
  throw new EvError(
    'usage',
    'The URL of the service is not known here. Set --base-url to its public URL, such as https://ev.example.com, or EV_BASE_URL as for "ev serve".',
  )
}
