import type { EgressConfig } from '../config/file-settings.ts'
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
import { type Clock, SECOND, systemClock } from '../platform/clock.ts'
import { CHECK_NAMES } from '../platform/domain-names.ts'
import { EvError } from '../platform/error.ts'
import { silentLog } from '../platform/log.ts'
import { type Random, systemRandom } from '../platform/random.ts'
import { composeIdentityProvider } from './identity-provider.ts'
import { readWebhookCa } from './webhook-transport.ts'

/** Options that are not settings. */
type DoctorOptions = {
  readonly databaseUrl: string
  /** Mail servers to connect to; null for the default ones. */
  readonly exchangers: readonly string[] | null
}

/** External dependencies; omitted ones default to the real ones. */
type DoctorExternalDeps = {
  readonly clock?: Clock
  readonly random?: Random
  readonly resolver?: Resolver
  /** One for all egresses, or one for each. */
  readonly dial?: Dial | ((egress: EgressConfig) => Dial)
}

/** Builds the dependencies of the doctor. Opens no connection until a check runs. */
export function composeDoctor(
  config: Config,
  options: DoctorOptions,
  externalDeps: DoctorExternalDeps = {},
): DoctorDeps & { close(): void } {
  const { clock = systemClock, random = systemRandom, dial = tcpDial } = externalDeps
  const { all, each, close } = composeServers(config, externalDeps.resolver)
  return {
    clock,
    random,
    close,
    resolver: cachedResolver(all, { clock }),
    dnsServers: each,
    // An injected resolver is trusted.
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
    identityProvider: composeProviderTarget(config, { clock, random, resolver: all }),
  }
}

/** The settings may be incomplete: the doctor shows why. */
function composeProviderTarget(
  config: Config,
  deps: { readonly clock: Clock; readonly random: Random; readonly resolver: Resolver },
): DoctorDeps['identityProvider'] {
  try {
    const ca = config.oidcIssuer === null ? null : readWebhookCa(config)
    const baseUrl = config.baseUrl ?? LOCAL_URL
    const provider = composeIdentityProvider(config, { ...deps, log: silentLog, ca, baseUrl })
    if (provider === null) return null
    const title = `${provider.name} (${provider.issuer}, client ${config.oidcClientId})`
    return { title, fault: null, check: () => provider.check() }
  } catch (error) {
    if (!(error instanceof EvError)) throw error
    return { title: '', fault: error.message, check: async () => null }
  }
}

/** The service derives its URL when it listens. */
const LOCAL_URL = 'http://127.0.0.1'

type Servers = {
  readonly all: Resolver
  /** Queried separately, to find the one that does not work. */
  readonly each: readonly DnsServer[]
  readonly close: () => void
}

function composeServers({ dns }: Config, injected: Resolver | undefined): Servers {
  if (injected !== undefined) {
    return { all: injected, each: [{ name: 'the resolver', resolver: injected }], close: () => {} }
  }
  const servers = dns.length > 0 ? dns : systemServers()
  const each = servers.map(server => ({ name: toName(server), resolver: createResolver([server]) }))
  const all = createResolver(dns)
  const close = () => {
    for (const resolver of [all, ...each.map(one => one.resolver)]) resolver.close()
  }
  return { all, each, close }
}

/** Shorter than for a verification, as a check sends several queries in sequence. */
const DNS_TIMEOUT_MS = 3 * SECOND

/** Creates a resolver for these servers; without any, for those of the system. */
function createResolver(servers: readonly string[]) {
  const named = servers.filter(server => server !== '')
  const options = named.length === 0 ? {} : { servers: named }
  return createNodeResolver({ clock: systemClock, timeoutMs: DNS_TIMEOUT_MS, ...options })
}

const toName = (server: string) => (server === '' ? 'the system resolver' : server)
