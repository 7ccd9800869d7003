import { type Command, Option } from 'commander'
import { DEFAULT_ACTION_POLICY } from '../engine/verdict/action.ts'
import type { Include } from '../engine/verdict/present-result.ts'
import { type Result, toClass } from '../engine/verdict/verdict.ts'
import { EvError } from '../platform/error.ts'
import { pluralize } from '../platform/format.ts'
import { sanitizeText } from '../platform/text.ts'
import type { CliContext, SetExitCode } from './context.ts'
import { worksOnService } from './ev-command.ts'
import { EXIT_CODES } from './exit.ts'
import { printJson, printMessage } from './print.ts'
import type { Verified, Verifier } from './remote/verify.ts'
import { connectService, type ServiceFlags } from './service.ts'
import { addSettings, readConfig } from './settings.ts'

const EXAMPLES = `
Examples:
  ev verify ann@example.com
  ev verify --explain ann@example.com
  ev verify --json --include flags,evidence ann@example.com bob@example.org
  ev verify - --format csv < addresses.txt

Exit codes: 0 all addresses are deliverable; 1 at least one is risky or undeliverable; 2 at least one is unknown, and the others are deliverable.`

export function defineVerify(verify: Command, context: CliContext, setExitCode: SetExitCode): void {
  worksOnService(verify)
  verify
    .argument('<address...>', 'address to verify; - reads addresses from stdin, one per line')
    .addOption(
      new Option('--format <format>', 'output format (default: text)').choices([
        ...['text', 'json', 'ndjson', 'csv'],
      ]),
    )
    .addOption(
      new Option('--json', 'print JSON: one object, or an array for several addresses').conflicts(
        'format',
      ),
    )
    .addOption(
      new Option('--ndjson', 'print one JSON object per line, as results arrive').conflicts([
        ...['json', 'format'],
      ]),
    )
    .option('--include <field,…>', 'add fields to the JSON: flags, evidence')
    .option('--explain', 'show the SMTP dialogue with the mail server')
    .option('--no-smtp', 'skip the SMTP check')
    .option('--sandbox', 'simulate results; the prefix of an address selects its result')
    .addHelpText('after', EXAMPLES)
    .action(async (addresses: string[], flags) => {
      setExitCode(await verifyCommand(context, addresses, flags))
    })
  addSettings(verify, context)
}

type VerifyFormat = 'text' | 'json' | 'ndjson' | 'csv'

type VerifyFlags = ServiceFlags & {
  readonly format?: VerifyFormat
  readonly json?: boolean
  readonly ndjson?: boolean
  readonly quiet?: boolean
  readonly include?: string
  readonly explain?: boolean
  readonly smtp?: boolean
  readonly sandbox?: boolean
  readonly [setting: string]: unknown
}

/** Addresses verified at the same time; more would only wait for the limits of operators. */
const PARALLEL_MAX = 20

/** Verifies the addresses and returns the exit code. */
async function verifyCommand(
  context: CliContext,
  addresses: readonly string[],
  flags: VerifyFlags,
): Promise<number> {
  requireHyphens(addresses)
  const include = includes(flags)
  const format = flags.json ? 'json' : flags.ndjson ? 'ndjson' : (flags.format ?? 'text')
  const hasNotes = format === 'text' && !flags.quiet
  // A dialogue belongs to its address, so --explain prints several addresses one below the other.
  const isTable = format === 'text' && !flags.explain && isSeveral(addresses)
  const verifier = await createVerifier(context, flags, { isText: format === 'text', hasNotes })
  const { cleanAddress } = await import('../engine/address/address.ts')
  const { resultText, resultsText } = await import('./result-text.ts')
  const verify = (given: string) => {
    const { text, notes } = cleanAddress(given)
    if (hasNotes && notes.length > 0) {
      printMessage(context, 'note', `Removed from the address: ${notes.join(', ')}.`)
    }
    return verifier.verify(text)
  }
  const progress = isTable && hasNotes ? await showProgress(context) : null
  const csv = format === 'csv' ? await createCsvText() : null
  const print = (verified: Verified) => {
    progress?.add()
    if (csv !== null) for (const text of csv.rows(verified)) context.stdout.write(text)
    else if (format === 'ndjson') {
      context.stdout.write(`${JSON.stringify(verified.toObject(include))}\n`)
    } else if (format === 'text' && !isTable) {
      context.stdout.write(`${resultText(context, verified)}\n`)
    }
  }
  const stop = () => context.exit(EXIT_CODES.interrupted)
  context.signals.once('SIGINT', stop)
  try {
    if (csv !== null) context.stdout.write(csv.begin)
    const verified = await inOrder(textsOf(context, addresses), verify, print)
    const results = verified.map(({ result }) => result)
    progress?.end()
    if (isTable) context.stdout.write(resultsText(context, verified))
    if (results.length === 0) throw new EvError('bad_input', 'No addresses on stdin.')
    if (format === 'json') {
      const objects = verified.map(({ toObject }) => toObject(include))
      const isOne = addresses.length === 1 && objects.length === 1
      printJson(context, isOne ? objects[0] : objects)
    }
    verifier.printNotes(results)
    return exitCode(results)
  } finally {
    progress?.end()
    context.signals.off('SIGINT', stop)
    await verifier.close()
  }
}

/** Rejects an option whose hyphens a word processor has made dashes: it would be an address. */
function requireHyphens(addresses: readonly string[]): void {
  const option = addresses.find(text => DASHED_OPTION.test(text))
  if (option === undefined) return
  throw new EvError(
    'usage',
    `"${sanitizeText(option, 40)}" starts with a dash, not with hyphens. Write --${option.replace(/^\P{L}+/u, '')}.`,
  )
}

const DASHED_OPTION = /^-?[\u2010-\u2015\u2212][-\u2010-\u2015\u2212]?[a-z][a-z-]*$/

async function createVerifier(
  context: CliContext,
  flags: VerifyFlags,
  notes: { readonly isText: boolean; readonly hasNotes: boolean },
): Promise<Verifier> {
  const { service, sandbox = false, smtp: checkSmtp = true, explain: withDialogue = false } = flags
  if (service === undefined) {
    const { createLocalVerifier } = await import('./local/verify.ts')
    const config = readConfig(context, flags)
    return createLocalVerifier(context, config, { sandbox, checkSmtp, withDialogue, ...notes })
  }
  const { createRemoteVerifier } = await import('./remote/verify.ts')
  const client = await connectService(service, { sandbox })
  return createRemoteVerifier(client, { checkSmtp, withDialogue })
}

/** Formats results as CSV with the columns of `ev bulk`. */
async function createCsvText() {
  const { detectDialect } = await import('../csv/csv.ts')
  const { rowText } = await import('./bulk/row-text.ts')
  const dialect = detectDialect(new TextEncoder().encode('email\n'), { header: true })
  const { begin, rows } = rowText('csv', dialect, { raw: false, policy: DEFAULT_ACTION_POLICY })
  return {
    begin,
    rows({ result, decision }: Verified) {
      const row = { row: 1, line: 1, text: result.email, cells: [result.email] }
      return rows([{ row, result, action: decision.action }])
    },
  }
}

/** Shows on a terminal how many results there are, because a table is printed at the end. */
async function showProgress(context: CliContext) {
  const { openLiveOutput } = await import('./live-output.ts')
  const live = await openLiveOutput(context)
  let finished = 0
  const draw = () => live.show(() => [`Verifying: ${pluralize(finished, 'result')}`])
  draw()
  return {
    add() {
      finished++
      draw()
    },
    end: () => live.end(),
  }
}

const isSeveral = (addresses: readonly string[]) => addresses.length > 1 || addresses[0] === '-'

/** Verifies a few at a time and prints each result as soon as all results before it are printed. */
async function inOrder(
  texts: AsyncIterable<string>,
  verify: (text: string) => Promise<Verified>,
  print: (verified: Verified) => void,
): Promise<Verified[]> {
  const results: Verified[] = []
  const inFlight: Promise<void>[] = []
  let last = Promise.resolve()
  const printAfter = async (run: Promise<Verified>, before: Promise<void>) => {
    const [result] = await Promise.all([run, before])
    print(result)
    results.push(result)
  }
  for await (const text of texts) {
    last = printAfter(verify(text), last)
    last.catch(() => {}) // Avoids an unhandled rejection before it is awaited below.
    inFlight.push(last)
    if (inFlight.length >= PARALLEL_MAX) await inFlight.shift()
  }
  await last
  return results
}

async function* textsOf(context: CliContext, addresses: readonly string[]): AsyncIterable<string> {
  for (const text of addresses) {
    if (text !== '-') yield text
    else {
      const { createInterface } = await import('node:readline')
      for await (const line of createInterface({ input: context.stdin })) {
        if (line.trim() !== '') yield line
      }
    }
  }
}

function includes(flags: VerifyFlags): Include[] {
  const words = flags.include === undefined ? [] : flags.include.split(',').map(word => word.trim())
  const wrong = words.find(word => word !== 'flags' && word !== 'evidence')
  if (wrong !== undefined) {
    throw new EvError(
      'usage',
      `--include has "${sanitizeText(wrong)}"; it takes flags, evidence or both.`,
    )
  }
  return words as Include[]
}

function exitCode(results: readonly Result[]): number {
  const classes = results.map(({ verdict }) => toClass(verdict))
  if (classes.some(klass => klass === 'undeliverable' || klass === 'risky')) return 1
  return classes.includes('unknown') ? 2 : 0
}
