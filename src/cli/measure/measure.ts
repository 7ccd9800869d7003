import { writeFile } from 'node:fs/promises'
import { extname } from 'node:path'
import { composeEngine } from '../../compose/engine.ts'
import type { EgressConfig } from '../../config/file-settings.ts'
import { isFault } from '../../engine/address/address.ts'
import { type Dial, tcpDial } from '../../engine/smtp/dial.ts'
import { type Class, toClass } from '../../engine/verdict/verdict.ts'
import { EvError, errorMessage } from '../../platform/error.ts'
import { type CliContext, externalDepsFrom, inCwd } from '../context.ts'
import { stderrLog } from '../log.ts'
import { printJson, printMessage } from '../print.ts'
import { readConfig } from '../settings.ts'
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
import { scoreVerdicts } from './score.ts'
import { parseTool, runTool, type ToolSource, toMatchKey, type Verdicts } from './tool.ts'
import { type KnownAddress, readTruthList } from './truth-list.ts'

export type MeasureFlags = {
  readonly tool?: readonly string[]
  readonly results?: readonly string[]
  readonly output?: string
  readonly ev?: boolean
  readonly wait?: boolean
  readonly json?: boolean
  readonly [setting: string]: unknown
}

/** Runs `ev measure` and returns the exit code. */
export async function measureCommand(
  context: CliContext,
  file: string,
  flags: MeasureFlags,
): Promise<number> {
  const sources = [
    ...(flags.tool ?? []).map(value => parseTool('--tool', value)),
    ...(flags.results ?? []).map(value => parseTool('--results', value)),
  ]
  const format = flags.output === undefined ? null : pageFormat(flags.output)
  if (flags.ev === false && sources.length === 0) {
    throw new EvError('usage', 'Nothing to measure: --no-ev needs --tool or --results.')
  }
  const { addresses, skipped } = await readTruthList(inCwd(context, file))
  const tools: Measured[] = []
  if (flags.ev !== false) tools.push(await measureEv(context, flags, addresses))
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
  return 0
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

async function measureEv(
  context: CliContext,
  flags: MeasureFlags,
  addresses: readonly KnownAddress[],
): Promise<Measured> {
  const config = readConfig(context, flags)
  const log = stderrLog(context, config, () => terminalWidth(context, context.stderr))
  const deps = externalDepsFrom(context, log)
  const counter = { connections: 0 }
  const dial = countDials(deps.dial ?? tcpDial, counter)
  const engine = composeEngine(config, { ...deps, dial }, { list: true })
  const options = { forceRefresh: true, wait: flags.wait ?? true }
  const startedAt = context.clock.monotonicNow()
  const verdicts = new Map<string, Class>()
  let blocks = 0
  try {
    const texts = addresses.map(({ address }) => address)
    for await (const result of engine.verifyMany(texts, options)) {
      const { address } = result.evidence
      if (!isFault(address)) verdicts.set(toMatchKey(address), toClass(result.verdict))
      if (result.verdict.reason === 'probe_blocked') blocks++
    }
  } finally {
    await engine.close()
  }
  return {
    name: 'ev',
    score: score(addresses, verdicts),
    seconds: (context.clock.monotonicNow() - startedAt) / 1_000,
    connections: counter.connections,
    blocks,
  }
}

/** Counts the connections of all egresses. */
function countDials(
  dial: Dial | ((egress: EgressConfig) => Dial),
  counter: { connections: number },
): (egress: EgressConfig) => Dial {
  return egress => {
    const inner = typeof dial === 'function' ? dial(egress) : dial
    return {
      connect(to, signal) {
        counter.connections++
        return inner.connect(to, signal)
      },
      secure: (socket, host, signal) => inner.secure(socket, host, signal),
    }
  }
}

async function measureTool(
  context: CliContext,
  source: ToolSource,
  addresses: readonly KnownAddress[],
): Promise<Measured> {
  const isFile = 'file' in source
  const at = isFile ? { ...source, file: inCwd(context, source.file) } : source
  const startedAt = context.clock.monotonicNow()
  const verdicts = await runTool(
    at,
    addresses.map(({ address }) => address),
    context.cwd,
  )
  return {
    name: source.name,
    score: score(addresses, verdicts),
    seconds: isFile ? null : (context.clock.monotonicNow() - startedAt) / 1_000,
    connections: null,
    blocks: null,
  }
}

const score = (addresses: readonly KnownAddress[], verdicts: Verdicts) =>
  scoreVerdicts(addresses.map(({ key, truth }) => ({ truth, class: verdicts.get(key) ?? null })))

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
