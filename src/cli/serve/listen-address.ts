import { hostname } from 'node:os'
import type { CertificateFiles } from '../../api/server/certificate.ts'
import type { MayBePlain } from '../../api/server/listener.ts'
import type { Config } from '../../config/settings.ts'
import { hostPort } from '../../config/values.ts'
import { EvError } from '../../platform/error.ts'
import { inRanges } from '../../platform/ip.ts'

/** Where we listen, and how. */
export type ListenAddress = {
  readonly host: string
  readonly port: number
  /** Null: plain HTTP. */
  readonly files: CertificateFiles | null
  readonly mayBePlain: MayBePlain
}

/** Reads it from the settings. Throws EvError('bad_config') where keys of the API would be open to strangers. */
export function listenAddress(config: Config): ListenAddress {
  const { host, port } = hostPort(config.listen)
  const files = filesOf(config)
  const isOpen = files === null && !config.insecureHttp && config.trustProxy.length === 0
  if (isOpen && !isLoopback(host)) throw plainToAll(config)
  return { host, port, files, mayBePlain: config.insecureHttp ? () => true : byProxyOf(config) }
}

/** Plain HTTP is for this machine and for the proxies, but for what came to a proxy by plain HTTP itself. */
function byProxyOf({ trustProxy }: Config): MayBePlain {
  const isAllowed = inRanges([...LOOPBACK, ...trustProxy])
  const isProxy = inRanges(trustProxy)
  return (ip, forwardedProto) => isAllowed(ip) && !(isProxy(ip) && forwardedProto === 'http')
}

/** Our address for clients, as far as the settings tell. */
export function baseUrlOf(config: Config, address: ListenAddress, port: number): string {
  if (config.baseUrl !== null) return config.baseUrl
  const isUsual = port === (address.files === null ? 80 : 443)
  return `${schemeOf(address)}://${nameOf(address.host)}${isUsual ? '' : `:${port}`}`
}

/** Where we listen, for people. */
export const placeOf = (address: ListenAddress, port: number) =>
  `${schemeOf(address)}://${bracketed(address.host)}:${port}`

const schemeOf = ({ files }: ListenAddress) => (files === null ? 'http' : 'https')

const LOOPBACK = ['127.0.0.0/8', '::1']

const isLoopback = (host: string) => host === 'localhost' || inRanges(LOOPBACK)(host)

/** 0.0.0.0 is an address to listen on, not one to be asked at. */
function nameOf(host: string): string {
  if (host === '0.0.0.0' || /^[0:]+$/.test(host)) return hostname()
  return bracketed(host)
}

const bracketed = (host: string) => (host.includes(':') ? `[${host}]` : host)

function filesOf({ tlsCert, tlsKey }: Config): CertificateFiles | null {
  if (tlsCert !== null && tlsKey !== null) return { cert: tlsCert, key: tlsKey }
  if (tlsCert === null && tlsKey === null) return null
  const [given, missing] =
    tlsCert === null ? ['--tls-key', '--tls-cert'] : ['--tls-cert', '--tls-key']
  throw new EvError(
    'bad_config',
    `TLS needs a certificate and its key: ${given} is there, ${missing} is not. Give both, or none.`,
  )
}

const plainToAll = ({ listen }: Config) =>
  new EvError(
    'bad_config',
    `ev does not speak plain HTTP on ${listen}, where others may read API keys. Give a certificate with --tls-cert and ` +
      '--tls-key, or name with --trust-proxy the addresses of the proxy that speaks TLS with clients, or allow it with ' +
      '--insecure-http where nobody else can listen.',
  )
