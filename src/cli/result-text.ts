import { styleText } from 'node:util'
import { isFault } from '../engine/address/address.ts'
import { noMailText } from '../engine/dns/route.ts'
import { retryAfterSeconds } from '../engine/probe/retry-policy.ts'
import { describeOutcome } from '../engine/smtp/outcome-text.ts'
import type { Decision } from '../engine/verdict/action.ts'
import { isSimulated } from '../engine/verdict/present-result.ts'
import { REASON_TEXTS } from '../engine/verdict/reason.ts'
import {
  CLASSES,
  type Class,
  type Evidence,
  type Result,
  toClass,
} from '../engine/verdict/verdict.ts'
import { SECOND } from '../platform/clock.ts'
import { formatDuration, formatNumber, isoTime, pluralize } from '../platform/format.ts'
import { sanitizeText, toSentence } from '../platform/text.ts'
import type { CliContext } from './context.ts'
import { keyValues, table } from './table.ts'
import { textWidth, widthOf, wrapLines, wrapText } from './width.ts'

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

type DecidedResult = { readonly result: Result; readonly decision: Decision }

/** Formats one result in full, and several as a table with their counts. */
export function resultsText(
  context: Pick<CliContext, 'stdout' | 'env'>,
  all: readonly DecidedResult[],
): string {
  const results = all.map(({ result }) => result)
  const [first] = all
  if (first === undefined) return ''
  if (all.length === 1) return `${resultText(context, first)}\n`
  const { stdout } = context
  const width = widthOf(context, stdout)
  const counts = CLASSES.map(klass => [klass, countOf(results, klass)] as const)
    .filter(([, count]) => count > 0)
    .map(([klass, count]) => `${formatNumber(count)} ${klass}`)
  const mark = results.some(isSimulated) ? ' (SIMULATED)' : ''
  const total = pluralize(results.length, 'address', 'addresses')
  const end = [`${total}${mark}: ${counts.join(', ')}.`, ...(stdout.isTTY ? [HINT] : [])]
  const rows = all.map(one => resultRow(context, one))
  return `${rowsText(rows, width)}\n${end.map(line => `${wrapLines(line, width)}\n`).join('')}`
}

const HINT = 'To show the evidence for an address, run "ev verify" with this address only.'

type ResultRow = {
  /** Address with its mark, class, reason and action. */
  readonly cells: readonly [string, string, string, string]
  readonly suggestion: string
}

function resultRow(
  { stdout }: Pick<CliContext, 'stdout'>,
  { result, decision }: DecidedResult,
): ResultRow {
  const { email, verdict, evidence } = result
  const klass = toClass(verdict)
  const mark = styleText(COLORS[klass], MARKS[klass], { stream: stdout })
  return {
    cells: [`${mark} ${shown(email)}`, klass, verdict.reason, decision.action],
    suggestion: evidence.suggestion === null ? '' : sanitizeText(evidence.suggestion),
  }
}

const shown = (email: string) => sanitizeText(email) || '(empty)'

const RESULT_COLUMNS = ['  ADDRESS', 'CLASS', 'REASON', 'ACTION'].map(title => ({ title }))

/**
 * Formats rows as the widest form that fits: a table; a table with each suggestion below its row; or
 * the address with everything else below it. Cells are never cut.
 */
function rowsText(rows: readonly ResultRow[], width: number | null): string {
  const plain = rows.map(({ cells }) => cells)
  const wide = rows.some(({ suggestion }) => suggestion !== '')
    ? table(
        [...RESULT_COLUMNS, { title: 'SUGGESTION' }],
        rows.map(({ cells, suggestion }) => [...cells, suggestion]),
      )
    : table(RESULT_COLUMNS, plain)
  if (width === null || fits(wide, width)) return wide
  const [header, ...lines] = table(RESULT_COLUMNS, plain).trimEnd().split('\n')
  const isTable = fits([header, ...lines].join('\n'), width)
  const blocks = rows.map(({ cells: [address, ...facts], suggestion }, n) => [
    ...(isTable ? [lines[n]] : [address, ...wrapText(facts.join(', '), width - 2).map(indent)]),
    ...(suggestion === '' ? [] : wrapText(`Did you mean ${suggestion}?`, width - 2).map(indent)),
  ])
  return [...(isTable ? [header] : []), ...blocks.flat()].map(line => `${line}\n`).join('')
}

const indent = (line: string) => `  ${line}`

const fits = (text: string, width: number) =>
  text.split('\n').every(line => textWidth(line) <= width)

const countOf = (results: readonly Result[], klass: Class) =>
  results.filter(({ verdict }) => toClass(verdict) === klass).length

/** Formats a verdict: the class, its meaning, what to do, and the evidence. */
export function resultText(
  context: Pick<CliContext, 'stdout' | 'env'>,
  { result, decision }: DecidedResult,
): string {
  const klass = toClass(result.verdict)
  const color = COLORS[klass]
  const mark = isSimulated(result) ? ' (SIMULATED)' : ''
  const head = `${MARKS[klass]} ${shown(result.email)} is ${klass}${mark}`
  const width = widthOf(context, context.stdout)
  const facts = keyValues(factsOf(result, decision), { width, nameWidth: 11 })
  const { dialogue } = result.evidence
  const dialogueLines = dialogue === null ? [] : ['', ...dialogueText(dialogue, width)]
  const title = styleText(color, wrapLines(head, width), { stream: context.stdout })
  return [`${title}\n${facts.trimEnd()}`, ...dialogueLines, ''].join('\n')
}

/** The lines after the first of a long command or reply are indented behind its `C:` or `S:`. */
function dialogueText(lines: readonly string[], width: number | null): string[] {
  if (lines.length === 0) return ['  No SMTP dialogue.']
  const room = width === null ? Number.POSITIVE_INFINITY : Math.max(20, width - 7)
  const wrapped = lines.map(line => wrapText(sanitizeText(line, 512), room).join('\n       '))
  return ['  SMTP dialogue:', ...wrapped.map(line => `    ${line}`)]
}

function factsOf(
  result: Result,
  { action, sentence }: Decision,
): [name: string, value: string | null][] {
  const { verdict, evidence } = result
  const { means, todo } = REASON_TEXTS[verdict.reason]
  const retryAfter = retryAfterSeconds(result)
  return [
    ['reason', `${verdict.reason} (risk ${verdict.risk}, confidence ${verdict.confidence})`],
    ['means', means],
    ['to do', todo],
    ['action', `${action}: ${sentence}`],
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
