import { createInterface } from 'node:readline'
import { composeEngine } from '../compose/engine.ts'
import { cleanAddress } from '../engine/address/address.ts'
import { type Include, presentResult } from '../engine/verdict/present-result.ts'
import { type Result, toClass } from '../engine/verdict/verdict.ts'
import { EvError } from '../platform/error.ts'
import { sanitizeText } from '../platform/text.ts'
import { type CliContext, externalDepsFrom } from './context.ts'
import { EXIT_CODES } from './exit.ts'
import { stderrLog } from './log.ts'
import { createOutboundHint } from './reachability-hint.ts'
import { heloHint, readConfig } from './settings.ts'
import { printResult } from './verify-output.ts'

export type VerifyFlags = {
  readonly json?: boolean
  readonly ndjson?: boolean
  readonly include?: string
  readonly explain?: boolean
  readonly smtp?: boolean
  readonly sandbox?: boolean
  readonly [setting: string]: unknown
}

/** Addresses asked at the same time; more would only stand in line. */
const PARALLEL_MAX = 20

/** `ev verify`: gives the code to exit with. */
export async function verifyCommand(
  context: CliContext,
  given: readonly string[],
  flags: VerifyFlags,
): Promise<number> {
  const config = readConfig(context, flags)
  const include = includes(flags)
  const reachability = createOutboundHint(stderrLog(context, config), config)
  const engine = composeEngine(config, externalDepsFrom(context, reachability.log), {
    sandbox: flags.sandbox ?? false,
  })
  const machine = flags.json === true || flags.ndjson === true
  const offline = flags.sandbox === true || flags.smtp === false
  const hint = machine || offline ? null : heloHint(config)
  if (hint !== null) context.stderr.write(`${hint}\n\n`)
  const options = {
    checkSmtp: flags.smtp ?? true,
    ...(flags.explain ? { include: ['dialogue' as const] } : {}),
  }
  const verify = (text: string) => engine.verify(cleaned(context, text, machine), options)
  const print = (result: Result) => {
    if (flags.ndjson) context.stdout.write(`${JSON.stringify(presentResult(result, include))}\n`)
    else if (!flags.json) context.stdout.write(`${printResult(context, result)}\n`)
  }
  const stop = () => context.exit(EXIT_CODES.interrupted)
  context.signals.once('SIGINT', stop)
  try {
    const results = await inOrder(textsOf(context, given), verify, print)
    if (flags.json) {
      const objects = results.map(result => presentResult(result, include))
      context.stdout.write(
        `${JSON.stringify(given.length === 1 && objects.length === 1 ? objects[0] : objects, null, 2)}\n`,
      )
    }
    for (const result of results) reachability.note(result)
    const unreached = reachability.atEnd()
    if (unreached !== null) context.stderr.write(`ev: ${unreached}\n`)
    return exitCode(results)
  } finally {
    context.signals.off('SIGINT', stop)
    await engine.close()
  }
}

/** Runs a few at a time and prints each as soon as it and those before it are there. */
async function inOrder(
  texts: AsyncIterable<string>,
  verify: (text: string) => Promise<Result>,
  print: (result: Result) => void,
): Promise<Result[]> {
  const results: Result[] = []
  const underWay: Promise<void>[] = []
  let last = Promise.resolve()
  const inTurn = async (run: Promise<Result>, before: Promise<void>) => {
    const [result] = await Promise.all([run, before])
    print(result)
    results.push(result)
  }
  for await (const text of texts) {
    last = inTurn(verify(text), last)
    last.catch(() => {}) // It is awaited below, perhaps only later.
    underWay.push(last)
    if (underWay.length >= PARALLEL_MAX) await underWay.shift()
  }
  await last
  return results
}

async function* textsOf(context: CliContext, given: readonly string[]): AsyncIterable<string> {
  for (const text of given) {
    if (text !== '-') yield text
    else
      for await (const line of createInterface({ input: context.stdin })) {
        if (line.trim() !== '') yield line
      }
  }
}

/** What people paste around an address is taken away, with a note. */
function cleaned(context: CliContext, text: string, quiet: boolean): string {
  const { text: address, notes } = cleanAddress(text)
  if (!quiet) for (const note of notes) context.stderr.write(`ev: ${sanitizeText(note)}\n`)
  return address
}

function includes(flags: VerifyFlags): Include[] {
  const words = flags.include === undefined ? [] : flags.include.split(',').map(word => word.trim())
  const wrong = words.find(word => word !== 'flags' && word !== 'evidence')
  if (wrong !== undefined) {
    throw new EvError(
      'usage',
      `--include takes flags, evidence or both; "${sanitizeText(wrong)}" is neither.`,
    )
  }
  return words as Include[]
}

function exitCode(results: readonly Result[]): number {
  const classes = results.map(({ verdict }) => toClass(verdict))
  if (classes.some(klass => klass === 'undeliverable' || klass === 'risky')) return 1
  return classes.includes('unknown') ? 2 : 0
}
