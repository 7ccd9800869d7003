import { hostname } from 'node:os'
import type { CertificateFiles } from '../../api/server/certificate.ts'
import type { MayBePlain } from '../../api/server/listener.ts'
import type { Config } from '../../config/settings.ts'
import { hostPort } from '../../config/values.ts'
import { EvError } from '../../platform/error.ts'
import { inRanges } from '../../platform/ip.ts'

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
  if (isOpen && !isLoopback(host)) throw plainToAll(config)
  return { host, port, files, mayBePlain: config.insecureHttp ? () => true : byProxyOf(config) }
}

/**
 * Allows plain HTTP from loopback and trusted proxies, unless the proxy itself received plain HTTP.
 */
function byProxyOf({ trustProxy }: Config): MayBePlain {
  const isAllowed = inRanges([...LOOPBACK, ...trustProxy])
  const isProxy = inRanges(trustProxy)
  return (ip, forwardedProto) => isAllowed(ip) && !(isProxy(ip) && forwardedProto === 'http')
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

const LOOPBACK = ['127.0.0.0/8', '::1']

const isLoopback = (host: string) => host === 'localhost' || inRanges(LOOPBACK)(host)

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
