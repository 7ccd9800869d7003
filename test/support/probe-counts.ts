import type { Simulator } from '../../src/simulator/simulator.ts'
import { waitUntil } from './wait.ts'

/** Returns how often each address `user…` or `gone…` was probed at a host of a simulator. */
export function getProbeCounts(simulator: Simulator, host: string): Map<string, number> {
  const { recipients = new Map<string, number>() } = simulator.counters().hosts[host] ?? {}
  return new Map([...recipients].filter(([address]) => /^(user|gone)\d/i.test(address)))
}

/** Waits until so many of these addresses were probed. */
export const untilProbed = (simulator: Simulator, host: string, addresses: number): Promise<void> =>
  waitUntil(() => getProbeCounts(simulator, host).size >= addresses)

/** Returns a list with a quoted column, in which every seventh address is unknown. */
export function listOf(domain: string, rows: number): string {
  const lines = Array.from({ length: rows }, (_, n) => {
    const name = n % 7 === 3 ? `gone${n}` : `user${n}`
    return `${n},${name}@${domain},"row, ${n}"`
  })
  return `id,email,note\n${lines.join('\n')}\n`
}
