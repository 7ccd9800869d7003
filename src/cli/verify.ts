import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { styleText } from 'node:util'
import { composeEngine } from '../compose/engine.ts'
import type { Config } from '../config/settings.ts'
import { detectDialect } from '../csv/csv.ts'
import { cleanAddress, isFault } from '../engine/address/address.ts'
import { noMailText } from '../engine/dns/route.ts'
import { CONNECTION_REJECTED } from '../engine/probe/mx-group-probe.ts'
import { retryAfterSeconds } from '../engine/probing/retry-policy.ts'
import { describeOutcome } from '../engine/smtp/outcome-text.ts'
import { type Include, isSimulated, presentResult } from '../engine/verdict/present-result.ts'
import { REASON_TEXTS } from '../engine/verdict/reason.ts'
import { type Class, type Evidence, type Result, toClass } from '../engine/verdict/verdict.ts'
import { SECOND } from '../platform/clock.ts'
import { EvError } from '../platform/error.ts'
import { formatDuration, formatNumber, isoTime, pluralize } from '../platform/format.ts'
import type { Log } from '../platform/log.ts'
import { sanitizeText, toSentence } from '../platform/text.ts'
import { rowText } from './bulk/row-text.ts'
import { type CliContext, externalDepsFrom } from './context.ts'
import { EXIT_CODES } from './exit.ts'
import type { LocalFeedback } from './local-feedback.ts'
import { stderrLog } from './log.ts'
import { printJson, printMessage } from './print.ts'
import { createOutboundHint } from './reachability-hint.ts'
import { heloHint, readConfig } from './settings.ts'
import { keyValues } from './table.ts'
import { terminalWidth, widthOf, wrapText } from './width.ts'

type VerifyFormat = 'text' | 'json' | 'ndjson' | 'csv'

export type VerifyFlags = {
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

/** Runs `ev verify` and returns the exit code. */
export async function verifyCommand(
  context: CliContext,
  addresses: readonly string[],
  flags: VerifyFlags,
): Promise<number> {
  const config = readConfig(context, flags)
  const include = includes(flags)
  const format = flags.json ? 'json' : flags.ndjson ? 'ndjson' : (flags.format ?? 'text')
  const log = stderrLog(context, config, () => terminalWidth(context, context.stderr))
  const reachability = createOutboundHint(format === 'text' ? withoutRejections(log) : log, config)
  const engine = composeEngine(config, externalDepsFrom(context, reachability.log), {
    sandbox: flags.sandbox ?? false,
  })
  const hasNotes = format === 'text' && !flags.quiet
  const options = {
    checkSmtp: flags.smtp ?? true,
    ...(flags.explain ? { include: ['dialogue' as const] } : {}),
  }
  const feedback = flags.sandbox ? null : await findFeedback(context, config)
  const verify = async (text: string) => {
    const result = await engine.verify(cleaned(context, text, !hasNotes), options)
    return feedback === null ? result : feedback.adjust(result)
  }
  const csv = rowText('csv', LIST_OF_ADDRESSES, { raw: false })
  const print = (result: Result) => {
    if (format === 'ndjson') {
      context.stdout.write(`${JSON.stringify(presentResult(result, include))}\n`)
    } else if (format === 'text') context.stdout.write(`${printResult(context, result)}\n`)
    else if (format === 'csv') {
      context.stdout.write(
        csv.row({ row: 1, line: 1, text: result.email, cells: [result.email] }, result),
      )
    }
  }
  const stop = () => context.exit(EXIT_CODES.interrupted)
  context.signals.once('SIGINT', stop)
  try {
    if (format === 'csv') context.stdout.write(csv.begin)
    const results = await inOrder(textsOf(context, addresses), verify, print)
    if (results.length === 0) throw new EvError('bad_input', 'No addresses on stdin.')
    if (format === 'json') {
      const objects = results.map(result => presentResult(result, include))
      const isOne = addresses.length === 1 && objects.length === 1
      printJson(context, isOne ? objects[0] : objects)
    }
    for (const result of results) reachability.note(result)
    const outboundHint = reachability.atEnd()
    if (outboundHint !== null) printMessage(context, 'warning', outboundHint)
    const hint = hasNotes && reachability.hasReached() ? heloHint(config) : null
    if (hint !== null) printMessage(context, 'note', hint)
    return exitCode(results)
  } finally {
    context.signals.off('SIGINT', stop)
    await engine.close()
    await feedback?.close()
  }
}

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
  verify: (text: string) => Promise<Result>,
  print: (result: Result) => void,
): Promise<Result[]> {
  const results: Result[] = []
  const inFlight: Promise<void>[] = []
  let last = Promise.resolve()
  const printAfter = async (run: Promise<Result>, before: Promise<void>) => {
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

const COLORS = {
  deliverable: 'green',
  risky: 'yellow',
  undeliverable: 'red',
  unknown: 'gray',
} as const satisfies Record<Class, string>

const MARKS: Readonly<Record<Class, string>> = {
  deliverable: '✔',
  risky: '!',
  undeliverable: '✘',
  unknown: '?',
}

/** Formats a verdict: the class, its meaning, what to do, and the evidence. */
function printResult(context: Pick<CliContext, 'stdout' | 'env'>, result: Result): string {
  const klass = toClass(result.verdict)
  const color = COLORS[klass]
  const mark = isSimulated(result) ? ' (SIMULATED)' : ''
  const head = `${MARKS[klass]} ${sanitizeText(result.email)} is ${klass}${mark}`
  const width = widthOf(context, context.stdout)
  const facts = keyValues(factsOf(result), { width, nameWidth: 11 })
  const { dialogue } = result.evidence
  const dialogueLines = dialogue === null ? [] : ['', ...dialogueText(dialogue, width)]
  const title = styleText(color, head, { stream: context.stdout })
  return [`${title}\n${facts.trimEnd()}`, ...dialogueLines, ''].join('\n')
}

/** The lines after the first of a long command or reply are indented behind its `C:` or `S:`. */
function dialogueText(lines: readonly string[], width: number | null): string[] {
  if (lines.length === 0) return ['  No SMTP dialogue.']
  const room = width === null ? Number.POSITIVE_INFINITY : Math.max(20, width - 7)
  const wrapped = lines.map(line => wrapText(sanitizeText(line, 512), room).join('\n       '))
  return ['  SMTP dialogue:', ...wrapped.map(line => `    ${line}`)]
}

function factsOf(result: Result): [name: string, value: string | null][] {
  const { verdict, evidence } = result
  const { means, todo } = REASON_TEXTS[verdict.reason]
  const retryAfter = retryAfterSeconds(result)
  return [
    ['reason', `${verdict.reason} (risk ${verdict.risk}, confidence ${verdict.confidence})`],
    ['means', means],
    ['to do', todo],
    ['suggestion', evidence.suggestion === null ? null : sanitizeText(evidence.suggestion)],
    ['retry', retryAfter === null ? null : `in ${formatDuration(retryAfter * SECOND)}`],
    ['evidence', evidenceText(evidence)],
    ['details', detailsText(evidence)],
    ['mail server', mailServer(evidence)],
    ['reply', replyText(evidence)],
    ['catch-all', evidence.catchAll === null ? null : evidence.catchAll ? 'yes' : 'no'],
    ['flags', flagTexts(evidence)],
    ['signals', signalTexts(evidence)],
    ['feedback', feedbackText(evidence)],
    ['time', `${formatNumber(result.tookMs)} ms${result.cached ? ', cached' : ''}`],
  ]
}

function evidenceText(evidence: Evidence): string | null {
  const { address, route, answer, failure } = evidence
  if (failure !== null) return toSentence(sanitizeText(failure))
  if (isFault(address)) return address.message
  if (answer !== null) return describeOutcome(answer)
  if (evidence.skipped === 'literal') return 'An address literal names a machine, not a domain.'
  if (evidence.skipped === 'unwanted') return 'The SMTP check was skipped (--no-smtp).'
  if (evidence.skipped === 'finished') return 'The list was finished before the address was probed.'
  if (evidence.skipped === 'sandbox') return 'Simulated: no mail server was contacted.'
  const noMail = route === null ? null : noMailText(route)
  return noMail === null ? null : toSentence(noMail)
}

/** Returns the rule that an address violates, or the error of a connection. */
function detailsText({ address, answer }: Evidence): string | null {
  if (isFault(address)) return address.rule
  return answer?.kind === 'no-response' ? toSentence(sanitizeText(answer.detail)) : null
}

function mailServer({ host, ip, tls, operator }: Evidence): string | null {
  if (host === null) return operator === null ? null : `run by ${operator.title}`
  const where = `${sanitizeText(host)}${ip === null ? '' : ` [${ip}]`}`
  return `${where}${tls ? ', with TLS' : ''}${operator === null ? '' : `, run by ${operator.title}`}`
}

function replyText({ answer }: Evidence): string | null {
  if (answer === null || answer.kind === 'no-response') return null
  const { code, enhanced, text } = answer.reply
  return [code, enhanced, sanitizeText(text)].filter(part => part !== null && part !== '').join(' ')
}

/** Formats the feedback about an address and its domain, and the measured confidence; null if none. */
function feedbackText({ feedback, domainFeedback, calibration }: Evidence): string | null {
  const parts = [
    feedback === undefined
      ? null
      : `${feedback.kind} on ${isoTime(feedback.occurredAt).slice(0, 10)}${feedback.decides ? ', which decides' : ''}`,
    domainFeedback === undefined
      ? null
      : `${formatNumber(domainFeedback.bounced)} of ${pluralize(domainFeedback.delivered + domainFeedback.bounced, 'address', 'addresses')} of the domain bounced`,
    calibration === undefined
      ? null
      : `confidence measured by ${pluralize(Math.round(calibration.reason.total), 'verdict')}, fixed ${calibration.fixed}`,
  ]
  return parts.filter(part => part !== null).join('; ') || null
}

const signalTexts = ({ signals = [] }: Evidence): string | null =>
  signals
    .map(({ detail, shift }) => `${sanitizeText(detail)} (${shift > 0 ? '+' : ''}${shift})`)
    .join(' ') || null

function flagTexts({ flags, disposableHost }: Evidence): string | null {
  if (flags === null) return null
  const words = [
    flags.disposable || disposableHost ? 'disposable' : null,
    flags.role ? 'role account' : null,
    flags.free ? 'free provider' : null,
    flags.relay ? 'privacy relay' : null,
    flags.quality === 'low' ? 'looks made up' : null,
  ].filter(word => word !== null)
  return words.length === 0 ? null : words.join(', ')
}
