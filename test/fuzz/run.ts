// Coverage-guided fuzzing of what reads foreign bytes: npm run fuzz -- [TARGET …] [--seconds N]
//   [--seed N] [--keep]
// Each target runs for ten minutes, or N seconds. An input that fails is shortened and written to
// fixtures/fuzz/TARGET/, where `npm test` tries it from then on. --keep writes the inputs that reach
// new code to corpus.txt there.
import { createHash } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { type Finding, findNode, runTarget, selectInputs } from './run-target.ts'
import { corpusPath, FUZZ_FIXTURES, loadTarget, readCorpus, TARGET_NAMES } from './target.ts'

/** Before a release. */
const SECONDS = 600
/** The shortest inputs come first; `npm test` tries them all in a second. */
const CORPUS_BYTES_MAX = 4 * 1024

const { values, positionals } = parseArgs({
  options: {
    seconds: { type: 'string', default: String(SECONDS) },
    seed: { type: 'string', default: '0' },
    keep: { type: 'boolean', default: false },
  },
  allowPositionals: true,
})
const seconds = toNumber('seconds', values.seconds, 1)
const seed = toNumber('seed', values.seed, 0)
const node = findNode()
if ('reason' in node) fail(node.reason)

console.log(
  '| target | executions | branches | inputs with new code | finding |\n|---|---|---|---|---|',
)
for (const name of selectTargets(positionals)) {
  const result = await runTarget(name, { seconds, seed })
  const { executions, edges, found, finding } = result
  const written = finding === null ? 'none' : await writeFinding(name, finding)
  console.log(`| ${name} | ${executions} | ${edges} | ${found.length} | ${written} |`)
  if (finding === null && values.keep) await keepInputs(name, found)
}

function selectTargets(names: readonly string[]): readonly string[] {
  const unknown = names.find(name => !TARGET_NAMES.includes(name))
  if (unknown !== undefined)
    fail(`"${unknown}" is not a target. The targets are ${TARGET_NAMES.join(', ')}.`)
  return names.length === 0 ? TARGET_NAMES : names
}

/** Prints why an input failed and returns where it was written. */
async function writeFinding(name: string, { kind, input, output }: Finding): Promise<string> {
  process.exitCode = 1
  console.error(output)
  if (input === null) return 'the process failed'
  // Each try of an input beyond a limit would reach that limit.
  const shortest = kind === 'crash' ? await shorten(name, input) : input
  const file = `${kind}-${createHash('sha256').update(shortest).digest('hex').slice(0, 8)}`
  writeFileSync(join(FUZZ_FIXTURES, name, file), shortest)
  return `fixtures/fuzz/${name}/${file}`
}

/** Takes out parts of an input as long as it fails with the same kind of error. */
async function shorten(name: string, input: Buffer): Promise<Buffer> {
  const { fuzz } = await loadTarget(name)
  const findFault = async (bytes: Buffer): Promise<string | null> => {
    try {
      await fuzz(bytes)
      return null
    } catch (error) {
      return error instanceof Error ? error.name : String(error)
    }
  }
  const fault = await findFault(input)
  // It failed only after others.
  if (fault === null) return input
  let shortest = input
  for (let length = input.length >> 1; length > 0; length >>= 1) {
    for (let at = 0; at + length <= shortest.length; ) {
      const rest = Buffer.concat([shortest.subarray(0, at), shortest.subarray(at + length)])
      if ((await findFault(rest)) === fault) shortest = rest
      else at += length
    }
  }
  return shortest
}

async function keepInputs(name: string, found: readonly Buffer[]): Promise<void> {
  const lines: string[] = []
  let length = 0
  for (const input of await selectInputs(name, [...readCorpus(name), ...found])) {
    const line = `${input.toString('base64')}\n`
    length += line.length
    if (length > CORPUS_BYTES_MAX) break
    lines.push(line)
  }
  writeFileSync(corpusPath(name), lines.join(''))
}

function toNumber(option: string, text: string, min: number): number {
  if (/^\d{1,6}$/.test(text) && Number(text) >= min) return Number(text)
  fail(`--${option} "${text}" is not a whole number from ${min} to 999999.`)
}

function fail(message: string): never {
  console.error(message)
  process.exit(2)
}
