// Measures the load on mail servers by the counters of the simulator: see bench/README.md.
import { parseArgs } from 'node:util'
import { machine } from './engine/figures.ts'
import { measure, type Pressure } from './server-load/measure.ts'
import { LISTS } from './server-load/scenario.ts'

const { values } = parseArgs({
  options: { list: { type: 'string', multiple: true }, addresses: { type: 'string' } },
})
const HEADINGS = ['list', 'seconds', 'correct', 'connections', 'to one IP', 'operator', 'domain']
const addresses = values.addresses === undefined ? 10_000 : Number(values.addresses)

console.log(`${machine()}\n`)
console.log('Peak of concurrent connections / of connections opened within one second:\n')
for (const cells of [HEADINGS, HEADINGS.map(() => '---')]) printRow(cells)
for (const [name, list] of Object.entries(LISTS)) {
  if (values.list !== undefined && !values.list.includes(name)) continue
  const plan = list(addresses)
  const { seconds, correct, connections, ip, operator, domain } = await measure(plan)
  const share = `${correct} of ${plan.addresses.size}`
  const pressures = [ip, operator, domain].map(pressureText)
  printRow([plan.title, seconds.toFixed(1), share, String(connections), ...pressures])
}

function printRow(cells: readonly string[]) {
  console.log(`| ${cells.join(' | ')} |`)
}

function pressureText({ atOnce, perSecond }: Pressure): string {
  return `${atOnce} / ${perSecond}`
}
