import type { EgressConfig } from '../config/egresses.ts'
import type { Config } from '../config/settings.ts'
import type { DoctorDeps } from '../doctor/doctor.ts'
import { thisMachine } from '../doctor/machine.ts'
import type { DnsServer } from '../doctor/network/dns.ts'
import { referenceMxHosts } from '../doctor/network/reference-hosts.ts'
import { cachedResolver } from '../engine/dns/cached-resolver.ts'
import { createNodeResolver, systemServers } from '../engine/dns/node-resolver.ts'
import type { Resolver } from '../engine/dns/resolver.ts'
import { type Dial, tcpDial } from '../engine/smtp/dial.ts'
import { createIpPolicy } from '../engine/smtp/dial-policy.ts'
import { CHECK_NAMES } from '../platform/check-names.ts'
import { type Clock, SECOND, systemClock } from '../platform/clock.ts'
import { type Random, systemRandom } from '../platform/random.ts'

/** What is not in the settings. */
export type DoctorOptions = {
  readonly databaseUrl: string
  /** Mail servers to call at; the usual ones when null. */
  readonly exchangers: readonly string[] | null
}

/** The doors to the world; what is left out is the real one. */
export type DoctorExternalDeps = {
  readonly clock?: Clock
  readonly random?: Random
  readonly resolver?: Resolver
  /** One for all egresses, or one for each. */
  readonly dial?: Dial | ((egress: EgressConfig) => Dial)
}

/** Builds what the doctor examines, from settings and doors. Opens nothing before it is asked something. */
export function composeDoctor(
  config: Config,
  options: DoctorOptions,
  externalDeps: DoctorExternalDeps = {},
): DoctorDeps & { close(): void } {
  const { clock = systemClock, random = systemRandom, dial = tcpDial } = externalDeps
  const { all, each, close } = composeServers(config, externalDeps.resolver)
  return {
    ...{ clock, random, close },
    resolver: cachedResolver(all, { clock }),
    dnsServers: each,
    // A resolver that was handed in is not ours to doubt.
    dnsCheckNames: externalDeps.resolver === undefined ? (config.dnsCheckNames ?? CHECK_NAMES) : [],
    egresses: config.egresses.map(egress => ({
      ...egress,
      proxied: egress.proxy !== null,
      dial: typeof dial === 'function' ? dial(egress) : dial,
    })),
    isPublic: createIpPolicy(config.allowRanges),
    smtpPort: config.smtpPort,
    exchangers: options.exchangers ?? referenceMxHosts(config.smtpPort),
    machine: thisMachine,
    concurrency: config.concurrency,
    dataDir: config.dataDir,
    databaseUrl: options.databaseUrl,
    databaseConnections: config.databaseConnections,
  }
}

type Servers = {
  readonly all: Resolver
  /** Asked one by one, to tell which of them does not work. */
  readonly each: readonly DnsServer[]
  readonly close: () => void
}

function composeServers({ dns }: Config, given: Resolver | undefined): Servers {
  if (given !== undefined) {
    return { all: given, each: [{ name: 'the resolver', resolver: given }], close: () => {} }
  }
  const servers = dns.length > 0 ? dns : systemServers()
  const each = servers.map(server => ({ name: nameOf(server), resolver: resolverOf([server]) }))
  const all = resolverOf(dns)
  const close = () => {
    for (const resolver of [all, ...each.map(one => one.resolver)]) resolver.close()
  }
  return { all, each, close }
}

/** Less than a verification waits, as several questions follow one another. */
const DNS_TIMEOUT_MS = 3 * SECOND

/** The system's own where no server is named. */
function resolverOf(servers: readonly string[]) {
  const named = servers.filter(server => server !== '')
  const given = named.length === 0 ? {} : { servers: named }
  return createNodeResolver({ clock: systemClock, timeoutMs: DNS_TIMEOUT_MS, ...given })
}

const nameOf = (server: string) => (server === '' ? 'the system’s resolver' : server)
