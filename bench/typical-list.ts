// Simulates a typical list at the default settings, beside two common strategies, in virtual time:
// node bench/typical-list.ts [--addresses N] [--strategy ev|connection|pace] [--seed N] [--providers]
import { parseArgs } from 'node:util'
import { type Measured, measureStrategy } from './typical-list/measure.ts'
import { STRATEGIES } from './typical-list/strategies.ts'
import { formatProviders, formatStrategies, RULE_TITLES } from './typical-list/table.ts'
import { SEED, SIZE } from './typical-list/world.ts'

const { values } = parseArgs({
  options: {
    addresses: { type: 'string', default: `${SIZE}` },
    seed: { type: 'string', default: `${SEED}` },
    strategy: { type: 'string', multiple: true },
    providers: { type: 'boolean', default: false },
  },
})
const names = values.strategy ?? Object.keys(STRATEGIES)
const unknown = names.find(name => !Object.hasOwn(STRATEGIES, name))
if (unknown !== undefined)
  throw new Error(`--strategy takes ${Object.keys(STRATEGIES).join(', ')}, not ${unknown}.`)
const size = Number(values.addresses)
for (const harvestRule of ['row', 'share'] as const) {
  const measured: Measured[] = []
  for (const name of names) {
    const strategy = STRATEGIES[name as keyof typeof STRATEGIES]
    measured.push(await measureStrategy(strategy, { size, seed: Number(values.seed), harvestRule }))
  }
  print(`### ${RULE_TITLES[harvestRule]}\n`, ...formatStrategies(measured), '')
  if (!values.providers) continue
  for (const one of measured) print(`${one.name}:\n`, ...formatProviders(one), '')
}

function print(...lines: string[]) {
  for (const line of lines) process.stdout.write(`${line}\n`)
}
