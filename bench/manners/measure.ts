import { createEngine } from '../../src/index.ts'
import type { SimulatorCounters } from '../../src/simulator/counters.ts'
import type { SessionCounters } from '../../src/simulator/session-log.ts'
import { startScenarioProcess } from '../../src/simulator/simulator-process.ts'
import type { List } from './scenario.ts'

/** Connections: the most at once, and the most that were opened within one second. */
export type Pressure = { readonly atOnce: number; readonly perSecond: number }

export type Measured = {
  readonly seconds: number
  /** Addresses whose verdict is the right one. */
  readonly right: number
  readonly connections: number
  readonly ip: Pressure
  readonly operator: Pressure
  readonly domain: Pressure
}

/** Verifies a list by the engine with its default settings; what would be asked again later ends as it is. */
export async function measure(list: List): Promise<Measured> {
  const world = await startScenarioProcess(list.scenario)
  const engine = createEngine({
    dns: [world.dnsAddress],
    smtpPort: world.smtpPort,
    allowRanges: ['127.0.0.0/8'],
    specialDomains: true,
    helo: 'probe.example.com',
    cache: false,
  })
  try {
    const startedAt = performance.now()
    let right = 0
    for await (const { email, verdict } of engine.verifyMany(list.addresses.keys(), {
      wait: false,
    })) {
      if (verdict.reason === list.addresses.get(email)) right++
    }
    const seconds = (performance.now() - startedAt) / 1_000
    await engine.close()
    return { seconds, right, ...pressuresOf(await world.counters(), list) }
  } finally {
    await engine.close()
    await world.close()
  }
}

/** All servers of a list are at one address. */
function pressuresOf({ total, hosts, domains }: SimulatorCounters, { ownOperators }: List) {
  const ip = most(Object.values(hosts))
  const domain = most(Object.values(domains))
  const operator = ownOperators ? domain : ip
  return { connections: total.connections, ip, operator, domain }
}

const most = (counters: readonly SessionCounters[]): Pressure => ({
  atOnce: Math.max(...counters.map(({ sessionsPeak }) => sessionsPeak)),
  perSecond: Math.max(...counters.map(one => one.connectionsPerSecondPeak)),
})
