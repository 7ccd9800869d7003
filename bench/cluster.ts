// Measures several ev processes on one PostgreSQL database:
// node bench/cluster.ts [--speed] [--cost] [--statements] [--idle] [--chaos] [--rows N] [--kills N]
import { parseArgs } from 'node:util'
import { measureCost } from './cluster/cost.ts'
import { measureChaos } from './cluster/kills.ts'
import { measureSpeed } from './cluster/speed.ts'
import { measureIdle, measureStatements } from './cluster/statements.ts'
import { machine } from './engine/figures.ts'

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      speed: { type: 'boolean' },
      cost: { type: 'boolean' },
      statements: { type: 'boolean' },
      idle: { type: 'boolean' },
      chaos: { type: 'boolean' },
      rows: { type: 'string' },
      kills: { type: 'string' },
    },
  })
  const { speed, cost, statements, idle, chaos } = values
  const all = ![speed, cost, statements, idle, chaos].includes(true)
  print(`Machine: ${machine()}; PostgreSQL 18 on the same.`)
  const faults: string[] = []
  const rows = values.rows === undefined ? undefined : Number(values.rows)
  if (all || speed) faults.push(...(await measureSpeed(print, rows)))
  if (all || cost) faults.push(...(await measureCost(print, rows)))
  if (all || statements) faults.push(...(await measureStatements(print, rows)))
  if (all || idle) faults.push(...(await measureIdle(print)))
  if (all || chaos) faults.push(...(await measureChaos(print, rows, Number(values.kills ?? 36))))
  print(faults.length === 0 ? '\nAll checks passed.' : `\nFailed checks:\n- ${faults.join('\n- ')}`)
  if (faults.length > 0) process.exitCode = 1
}

const print = (line: string) => void process.stdout.write(`${line}\n`)

await main()
