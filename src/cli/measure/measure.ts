import { writeFile } from 'node:fs/promises'
import { extname } from 'node:path'
import type { Command } from 'commander'
import { EvError, errorMessage } from '../../platform/error.ts'
import { type CliContext, inCwd } from '../context.ts'
import { worksWithoutData } from '../ev-command.ts'
import { collect } from '../flag-values.ts'
import { printJson, printMessage } from '../print.ts'
import { addSettings, readConfig } from '../settings.ts'
import { table } from '../table.ts'
import { terminalWidth } from '../width.ts'
import {
  describeMeasurement,
  type Measured,
  type Measurement,
  measureHtml,
  measureMarkdown,
  measureTables,
} from './measure-page.ts'

const EXAMPLES = `
Examples:
  ev measure truth.csv
  ev measure truth.csv --tool 'other=./other-tool --json' -o accuracy.md
  ev measure truth.csv --results zerobounce=all_results.csv --no-ev

The list has a column with addresses and a column "truth": exists or missing. A tool reads addresses
from stdin, one per line, and writes CSV or JSON lines with the columns email and class, or in the
words of another service.`

export function defineMeasure(measure: Command, context: CliContext): void {
  worksWithoutData(measure)
  measure
    .argument('<file>', 'list of addresses with their truth')
    .option(
      '--tool <name=command>',
      'also measure a command that reads addresses from stdin; repeat it for several',
      collect,
    )
    .option(
      '--results <name=file>',
      'also measure results that a tool or a service has written; repeat it for several',
      collect,
    )
    .option('--no-wait', 'do not retry greylisted and deferred addresses, which can take hours')
    .option('--no-ev', 'do not verify the addresses with ev')
    .option('-o, --output <file>', 'write a page to publish: .md or .html')
    .option('--json', 'print JSON: one object')
    .addHelpText('after', EXAMPLES)
    .action((file: string, flags) => measureCommand(context, file, flags))
  addSettings(measure, context)
}

type MeasureFlags = {
  readonly tool?: readonly string[]
  readonly results?: readonly string[]
  readonly output?: string
  readonly ev?: boolean
  readonly wait?: boolean
  readonly json?: boolean
  readonly [setting: string]: unknown
}

/** Measures each tool and writes the page. */
async function measureCommand(
  context: CliContext,
  file: string,
  flags: MeasureFlags,
): Promise<void> {
  const { parseTool } = await import('./tool.ts')
  const sources = [
    ...(flags.tool ?? []).map(value => parseTool('--tool', value)),
    ...(flags.results ?? []).map(value => parseTool('--results', value)),
  ]
  const format = flags.output === undefined ? null : pageFormat(flags.output)
  if (flags.ev === false && sources.length === 0) {
    throw new EvError('usage', 'Nothing to measure: --no-ev needs --tool or --results.')
  }
  const { readTruthList } = await import('./truth-list.ts')
  const { addresses, skipped } = await readTruthList(inCwd(context, file))
  const { measureEv, measureTool } = await import('./measure-tool.ts')
  const tools: Measured[] = []
  if (flags.ev !== false) {
    const wait = flags.wait ?? true
    tools.push(await measureEv(context, readConfig(context, flags), { addresses, wait }))
  }
  // One after the other: they would share the limits of servers, and the time of the machine.
  for (const source of sources) tools.push(await measureTool(context, source, addresses))
  const measurement: Measurement = {
    addresses: addresses.length,
    exists: addresses.filter(({ truth }) => truth === 'exists').length,
    missing: addresses.filter(({ truth }) => truth === 'missing').length,
    skipped,
    tools,
  }
  if (flags.output !== undefined && format !== null) {
    await writePage(inCwd(context, flags.output), format(measurement))
  }
  if (flags.json) printJson(context, toObject(measurement))
  else printTables(context, measurement)
}

const PAGES: Readonly<Record<string, (measurement: Measurement) => string>> = {
  '.md': measureMarkdown,
  '.html': measureHtml,
}

function pageFormat(output: string): (measurement: Measurement) => string {
  const format = PAGES[extname(output).toLowerCase()]
  if (format !== undefined) return format
  throw new EvError('usage', `-o is ${output}; name a file that ends in .md or .html.`)
}

async function writePage(path: string, page: string): Promise<void> {
  await writeFile(path, page).catch(error => {
    throw new EvError('cannot_write', `${path} cannot be written: ${errorMessage(error)}.`)
  })
}

const toObject = ({ tools, ...counts }: Measurement) => ({
  ...counts,
  tools: tools.map(({ name, score, seconds, connections, blocks }) => ({
    name,
    ...score,
    seconds,
    connections,
    blocks,
  })),
})

function printTables(context: CliContext, measurement: Measurement): void {
  const width = terminalWidth(context, context.stdout)
  context.stdout.write(`${describeMeasurement(measurement)}\n`)
  for (const { title, head, rows } of measureTables(measurement)) {
    const columns = head.map(name => ({ title: name }))
    context.stdout.write(`\n${title}\n${table(columns, rows, width)}`)
  }
  if (measurement.tools.some(({ connections }) => connections === null)) {
    printMessage(context, 'note', 'Connections and blocks of other tools are not known.')
  }
}
