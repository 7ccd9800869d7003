import { createEngine } from '../../src/index.ts'
import type { SessionCounters, SimulatorCounters } from '../../src/simulator/counters.ts'
import { startScenarioProcess } from '../../src/simulator/simulator-process.ts'
import type { List } from './scenario.ts'

/** Peak number of concurrent connections, and of those opened within one second. */
export type Pressure = { readonly atOnce: number; readonly perSecond: number }

export type Measured = {
  readonly seconds: number
  /** Addresses with the correct verdict. */
  readonly correct: number
  readonly connections: number
  readonly ip: Pressure
  readonly operator: Pressure
  readonly domain: Pressure
}

/** Verifies a list with the default settings of the engine, without retries after a delay. */
export async function measure(list: List): Promise<Measured> {
  const simulator = await startScenarioProcess(list.scenario)
  const engine = createEngine({
    dns: [simulator.dnsAddress],
    smtpPort: simulator.smtpPort,
    allowRanges: ['127.0.0.0/8'],
    specialDomains: true,
    helo: 'probe.example.com',
    cache: false,
  })
  try {
    const startedAt = performance.now()
    let correct = 0
    for await (const { email, verdict } of engine.verifyMany(list.addresses.keys(), {
      wait: false,
    })) {
      if (verdict.reason === list.addresses.get(email)) correct++
    }
    const seconds = (performance.now() - startedAt) / 1_000
    await engine.close()
    return { seconds, correct, ...pressuresOf(await simulator.counters(), list) }
  } finally {
    await engine.close()
    await simulator.close()
  }
}

/** All servers of a list share one IP address. */
function pressuresOf({ total, hosts, domains }: SimulatorCounters, { ownOperators }: List) {
  const ip = toPressure(Object.values(hosts))
  const domain = toPressure(Object.values(domains))
  const operator = ownOperators ? domain : ip
  return { connections: total.connections, ip, operator, domain }
}

const toPressure = (counters: readonly SessionCounters[]): Pressure => ({
  atOnce: Math.max(...counters.map(({ sessionsPeak }) => sessionsPeak)),
  perSecond: Math.max(...counters.map(one => one.connectionsPerSecondPeak)),
})
