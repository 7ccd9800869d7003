import { addUp, type SimulatorCounters } from './counters.ts'
import { startDnsServer } from './dns-server.ts'
import { allotAddresses, cannotListen, openLoopbackNetwork } from './loopback/loopback-network.ts'
import { checkScenario } from './scenario/check.ts'
import type { Scenario } from './scenario/scenario.ts'
import { SessionLog } from './session-log.ts'
import { MailHost } from './smtp-host/host.ts'
import { createZone } from './zone.ts'

export type { SimulatorCounters as WorldCounters } from './counters.ts'
export type { DomainPlan, HostPlan, Scenario } from './scenario/scenario.ts'

/** A running mail world: everything listens on loopback addresses only. */
export type Simulator = {
  /** `127.0.0.1:5353`: what `--dns` takes. */
  readonly dnsAddress: string
  /** One port for all mail servers: what `--smtp-port` takes. */
  readonly smtpPort: number
  /** Addresses of each host, given or allotted. */
  readonly addresses: ReadonlyMap<string, readonly string[]>
  counters(): SimulatorCounters
  resetCounters(): void
  /** Ends all sessions and listeners. */
  close(): Promise<void>
}

/** Starts DNS and mail servers; throws where the scenario is wrong or a port is taken. */
export async function startSimulator(scenario: Scenario): Promise<Simulator> {
  checkScenario(scenario)
  const addresses = allotAddresses(scenario.hosts)
  const common = scenario.mailboxes === undefined ? {} : { mailboxes: scenario.mailboxes }
  const hosts = Object.entries(scenario.hosts).map(
    ([name, plan]) => new MailHost(name, { ...common, ...plan }),
  )
  const attendance = new SessionLog()
  const byDomain = new SessionLog()
  const network = await openLoopbackNetwork({
    hosts,
    addresses,
    port: scenario.smtpPort ?? 0,
    world: { roundTripMs: scenario.roundTripMs ?? 0, attendance, byDomain },
  })
  const zone = createZone(scenario.domains, addresses, scenario.dnsAdditional)
  const dns = await startDnsServer(zone, scenario.dnsPort, scenario.roundTripMs).catch(
    async error => {
      await network.close()
      throw cannotListen(scenario.dnsPort ?? 0, error)
    },
  )
  return {
    dnsAddress: `127.0.0.1:${dns.port}`,
    smtpPort: network.port,
    addresses,
    counters() {
      const counted = hosts.map(host => [host.name, host.tally.counters()] as const)
      const total = addUp(
        counted.map(([, counters]) => counters),
        attendance,
      )
      const { clients: domains } = byDomain.counters()
      return { total, hosts: Object.fromEntries(counted), domains, dns: dns.counters() }
    },
    resetCounters() {
      for (const host of hosts) host.tally.reset()
      attendance.reset()
      byDomain.reset()
      dns.resetCounters()
    },
    async close() {
      await Promise.all([network.close(), dns.close()])
    },
  }
}
