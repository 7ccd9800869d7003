import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { composeEngine } from '../compose/engine.ts'
import type { Config } from '../config/settings.ts'
import { detectDialect } from '../csv/csv.ts'
import { cleanAddress } from '../engine/address/address.ts'
import { CONNECTION_REJECTED } from '../engine/probe/mx-group-probe.ts'
import { DEFAULT_ACTION_POLICY, decide } from '../engine/verdict/action.ts'
import { type Include, presentResult } from '../engine/verdict/present-result.ts'
import { type Result, toClass } from '../engine/verdict/verdict.ts'
import { EvError } from '../platform/error.ts'
import { pluralize } from '../platform/format.ts'
import type { Log } from '../platform/log.ts'
import { sanitizeText } from '../platform/text.ts'
import { rowText } from './bulk/row-text.ts'
import { type CliContext, externalDepsFrom } from './context.ts'
import { EXIT_CODES } from './exit.ts'
import type { LocalFeedback } from './local-feedback.ts'
import { stderrLog } from './log.ts'
import { printJson, printMessage } from './print.ts'
import { createOutboundHint } from './reachability-hint.ts'
import { type Verified, verifyRemotely } from './remote/verify.ts'
import { resultsText, resultText } from './result-text.ts'
import { connectService, type ServiceFlags } from './service.ts'
import { heloHint, readConfig } from './settings.ts'
import { terminalWidth } from './width.ts'

type VerifyFormat = 'text' | 'json' | 'ndjson' | 'csv'

export type VerifyFlags = ServiceFlags & {
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

/** The dialect of a list of addresses, so that CSV has the columns of `ev bulk`. */
const LIST_OF_ADDRESSES = detectDialect(new TextEncoder().encode('email\n'), { header: true })

/** Addresses verified at the same time; more would only wait for the limits of operators. */
const PARALLEL_MAX = 20

/** Where addresses are verified: by an engine in this process, or by a service. */
type Verifier = {
  verify(address: string): Promise<Verified>
  /** Prints what the results say about this machine. */
  printNotes(results: readonly Result[]): void
  close(): Promise<void>
}

/** Runs `ev verify` and returns the exit code. */
export async function verifyCommand(
  context: CliContext,
  addresses: readonly string[],
  flags: VerifyFlags,
): Promise<number> {
  const include = includes(flags)
  const format = flags.json ? 'json' : flags.ndjson ? 'ndjson' : (flags.format ?? 'text')
  const hasNotes = format === 'text' && !flags.quiet
  // A dialogue belongs to its address, so --explain prints several addresses one below the other.
  const isTable = format === 'text' && !flags.explain && isSeveral(addresses)
  const verifier =
    flags.service === undefined
      ? await createLocalVerifier(context, flags, { isText: format === 'text', hasNotes })
      : await createRemoteVerifier(flags.service, flags)
  const verify = (text: string) => verifier.verify(cleaned(context, text, !hasNotes))
  const progress = isTable && hasNotes ? await showProgress(context) : null
  const csv = rowText('csv', LIST_OF_ADDRESSES, { raw: false, policy: DEFAULT_ACTION_POLICY })
  const print = (verified: Verified) => {
    const { result, decision, toObject } = verified
    progress?.add()
    if (format === 'ndjson') {
      context.stdout.write(`${JSON.stringify(toObject(include))}\n`)
    } else if (format === 'text' && !isTable) {
      context.stdout.write(`${resultText(context, verified)}\n`)
    } else if (format === 'csv') {
      const row = { row: 1, line: 1, text: result.email, cells: [result.email] }
      for (const text of csv.rows([{ row, result, action: decision.action }])) {
        context.stdout.write(text)
      }
    }
  }
  const stop = () => context.exit(EXIT_CODES.interrupted)
  context.signals.once('SIGINT', stop)
  try {
    if (format === 'csv') context.stdout.write(csv.begin)
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

type NoteOptions = {
  readonly isText: boolean
  /** Whether notes about the settings are printed. */
  readonly hasNotes: boolean
}

async function createLocalVerifier(
  context: CliContext,
  flags: VerifyFlags,
  { isText, hasNotes }: NoteOptions,
): Promise<Verifier> {
  const config = readConfig(context, flags)
  const log = stderrLog(context, config, () => terminalWidth(context, context.stderr))
  const reachability = createOutboundHint(isText ? withoutRejections(log) : log, config)
  const engine = composeEngine(config, externalDepsFrom(context, reachability.log), {
    sandbox: flags.sandbox ?? false,
  })
  const feedback = flags.sandbox ? null : await findFeedback(context, config)
  const options = {
    checkSmtp: flags.smtp ?? true,
    ...(flags.explain ? { include: ['dialogue' as const] } : {}),
  }
  return {
    async verify(address) {
      const found = await engine.verify(address, options)
      const result = feedback === null ? found : await feedback.adjust(found)
      return {
        result,
        decision: decide(result, config.actionPolicy),
        toObject: include => presentResult(result, include, config.actionPolicy),
      }
    },
    printNotes(results) {
      for (const result of results) reachability.note(result)
      const outboundHint = reachability.atEnd()
      if (outboundHint !== null) printMessage(context, 'warning', outboundHint)
      const hint = hasNotes && reachability.hasReached() ? heloHint(config) : null
      if (hint !== null) printMessage(context, 'note', hint)
    },
    async close() {
      await engine.close()
      await feedback?.close()
    },
  }
}

async function createRemoteVerifier(
  service: NonNullable<VerifyFlags['service']>,
  { sandbox = false, smtp = true, explain = false }: VerifyFlags,
): Promise<Verifier> {
  const client = await connectService(service, { sandbox })
  return {
    verify: address => verifyRemotely(client, address, { checkSmtp: smtp, withDialogue: explain }),
    printNotes() {},
    async close() {},
  }
}

/** Shows on a terminal how many results there are, because a table is printed at the end. */
async function showProgress(context: CliContext) {
  if (context.stderr.isTTY !== true) return null
  const { LiveText } = await import('./live-text.ts')
  const live = new LiveText(context)
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

/** Drops the warning about a server that rejected the connection: the text of a result has it. */
const withoutRejections = (log: Log): Log => ({
  ...log,
  warn: (message, fields) => message !== CONNECTION_REJECTED && log.warn(message, fields),
})

/** Loads the code of the database only if there is one: most users of `ev verify` have none. */
async function findFeedback(context: CliContext, config: Config): Promise<LocalFeedback | null> {
  const file = /^sqlite:(.+)/.exec(config.database)?.[1] ?? join(config.dataDir, 'ev.sqlite')
  if (!existsSync(file)) return null
  const { openLocalFeedback } = await import('./local-feedback.ts')
  return openLocalFeedback(context, config)
}

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
    else
      for await (const line of createInterface({ input: context.stdin })) {
        if (line.trim() !== '') yield line
      }
  }
}

/** Removes text pasted around an address, and prints a note. */
function cleaned(context: CliContext, text: string, quiet: boolean): string {
  const { text: address, notes } = cleanAddress(text)
  if (!quiet && notes.length > 0) {
    printMessage(context, 'note', `Removed from the address: ${notes.join(', ')}.`)
  }
  return address
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
