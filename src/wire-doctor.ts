import { SECOND, systemClock } from './base/clock.ts'
import { systemRandom } from './base/random.ts'
import type { Config } from './config/settings.ts'
import { cachedResolver } from './dns/cached-resolver.ts'
import { createNodeResolver, systemServers } from './dns/node-resolver.ts'
import type { DoctorWorld } from './doctor/doctor.ts'
import { thisMachine } from './doctor/machine/machine.ts'
import { USUAL_EXCHANGERS } from './doctor/way/round.ts'
import { tcpDial } from './smtp/dial.ts'
import { addressJudge } from './smtp/public-address.ts'

/** What is not in the settings. */
export type DoctorParts = {
  readonly databaseUrl: string
  /** Mail servers to call at; the usual ones when null. */
  readonly exchangers: readonly string[] | null
}

/** Builds what the doctor examines, with the real doors. Opens nothing before it is asked something. */
export function wireDoctor(config: Config, parts: DoctorParts): DoctorWorld & { close(): void } {
  const servers = config.dns.length > 0 ? config.dns : systemServers()
  const dnsServers = servers.map(server => ({
    name: nameOf(server),
    resolver: resolverOf([server]),
  }))
  const all = resolverOf(config.dns)
  return {
    clock: systemClock,
    random: systemRandom,
    resolver: cachedResolver(all, { clock: systemClock }),
    dnsServers,
    egresses: config.egresses.map(egress => ({
      ...egress,
      proxied: egress.proxy !== null,
      dial: tcpDial(egress),
    })),
    isPublic: addressJudge(config.allowRanges),
    smtpPort: config.smtpPort,
    exchangers: parts.exchangers ?? USUAL_EXCHANGERS,
    machine: thisMachine,
    concurrency: config.concurrency,
    dataDir: config.dataDir,
    databaseUrl: parts.databaseUrl,
    close() {
      for (const resolver of [all, ...dnsServers.map(server => server.resolver)]) resolver.close()
    },
  }
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
