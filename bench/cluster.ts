// Several processes of ev on one PostgreSQL: node bench/cluster.ts [--speed] [--cost] [--siege] [--rows N] [--kills N]
import { parseArgs } from 'node:util'
import { costOf } from './cluster/cost.ts'
import { siegeOf } from './cluster/kills.ts'
import { speedOf } from './cluster/speed.ts'
import { machine } from './engine/figures.ts'

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      speed: { type: 'boolean' },
      cost: { type: 'boolean' },
      siege: { type: 'boolean' },
      rows: { type: 'string' },
      kills: { type: 'string' },
    },
  })
  const all = !values.speed && !values.cost && !values.siege
  say(`Machine: ${machine()}; PostgreSQL 18 on the same.`)
  const faults: string[] = []
  const rows = values.rows === undefined ? undefined : Number(values.rows)
  if (all || values.speed) faults.push(...(await speedOf(say, rows)))
  if (all || values.cost) faults.push(...(await costOf(say, rows)))
  if (all || values.siege) faults.push(...(await siegeOf(say, rows, Number(values.kills ?? 36))))
  say(faults.length === 0 ? '\nAll checks hold.' : `\nDoes not hold:\n- ${faults.join('\n- ')}`)
  if (faults.length > 0) process.exitCode = 1
}

const say = (line: string) => void process.stdout.write(`${line}\n`)

await main()
