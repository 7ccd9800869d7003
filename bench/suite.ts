// The benchmarks with budgets: node bench/suite.ts [--check] [--write] [--renew] [PART …]
// --check compares the ratios with budgets.json, and fails beyond them; --write writes the measured
// sections of the page about performance; --renew makes the measured ratios the budgets.
import { readFileSync, writeFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { machine } from './engine/figures.ts'
import { type Budgets, findOverruns, formatBudget, renewBudgets } from './suite/budgets.ts'
import { PAGE, replaceSection } from './suite/page.ts'
import { PARTS, type PartName } from './suite/parts.ts'

const ROOT = join(import.meta.dirname, '..')
const BUDGETS = join(import.meta.dirname, 'budgets.json')

const { values, positionals } = parseArgs({
  options: {
    check: { type: 'boolean' },
    write: { type: 'boolean' },
    renew: { type: 'boolean' },
  },
  allowPositionals: true,
})
const budgets: Record<string, Budgets> = JSON.parse(readFileSync(BUDGETS, 'utf8'))
const overruns: string[] = []
print(`Machine: ${machine()}.\n`)
for (const name of selectParts(positionals)) {
  print(`### ${name}\n`)
  const [otherLoad = 0] = loadavg()
  const { ratios, lines } = await PARTS[name].measure()
  for (const line of lines) print(line)
  print('')
  if (values.check) {
    const own = budgets[name] ?? {}
    printRatios(ratios, own)
    overruns.push(...findOverruns(ratios, own).map(text => `${name}: ${text}`))
  }
  if (values.renew && budgets[name] !== undefined) {
    budgets[name] = renewBudgets(ratios, budgets[name])
    writeFileSync(BUDGETS, `${JSON.stringify(budgets, null, 2)}\n`)
  }
  if (values.write) {
    const page = readFileSync(PAGE, 'utf8')
    writeFileSync(PAGE, replaceSection(page, name, [...lines, '', describeRun(otherLoad)]))
  }
}
if (values.check)
  print(overruns.length === 0 ? 'Within all budgets.' : `Beyond:\n- ${overruns.join('\n- ')}`)
if (overruns.length > 0) process.exitCode = 1

function selectParts(names: readonly string[]): PartName[] {
  const known = Object.keys(PARTS) as PartName[]
  const unknown = names.find(name => !Object.hasOwn(PARTS, name))
  if (unknown !== undefined)
    throw new Error(`"${unknown}" is not a part. The parts are ${known.join(', ')}.`)
  return names.length === 0 ? known : known.filter(name => names.includes(name))
}

function printRatios(ratios: Readonly<Record<string, number>>, own: Budgets): void {
  print('| ratio | measured | budget |\n|---|---|---|')
  for (const [name, ratio] of Object.entries(ratios)) {
    const budget = own[name]
    print(`| ${name} | ${ratio.toFixed(2)} | ${budget === undefined ? '' : formatBudget(budget)} |`)
  }
  print('')
}

/** Tells when, where, with which version and beside how much load a section was measured. */
function describeRun(otherLoad: number): string {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  const date = new Date().toISOString().slice(0, 10)
  return `Measured on ${date} with version ${version}: ${machine()}, load average ${otherLoad.toFixed(1)} at the start.`
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
