import { styleText } from 'node:util'
import { isFault } from '../engine/address/address.ts'
import { noMailText } from '../engine/dns/route-text.ts'
import { retryAfterSeconds } from '../engine/probing/retry-policy.ts'
import { describeOutcome } from '../engine/smtp/outcome-text.ts'
import { REASON_TEXTS } from '../engine/verdict/reason.ts'
import { type Class, type Evidence, type Result, toClass } from '../engine/verdict/verdict.ts'
import { SECOND } from '../platform/clock.ts'
import { formatDuration } from '../platform/format.ts'
import { sanitizeText } from '../platform/text.ts'
import type { CliContext } from './context.ts'

const COLOURS = {
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

/** A verdict for people: what, what it means, what to do, and how we know. */
export function printResult({ stdout }: Pick<CliContext, 'stdout'>, result: Result): string {
  const klass = toClass(result.verdict)
  const colour = COLOURS[klass]
  const head = `${MARKS[klass]} ${sanitizeText(result.email)} is ${klass}`
  const facts = factsOf(result).map(([name, value]) => `  ${`${name}`.padEnd(12)} ${value}`)
  const said = result.evidence.dialogue
  const dialogue = said === null ? [] : ['', ...conversation(said)]
  return [styleText(colour, head, { stream: stdout }), ...facts, ...dialogue, ''].join('\n')
}

const conversation = (said: readonly string[]) =>
  said.length === 0
    ? ['  there was no conversation']
    : ['  the conversation:', ...said.map(line => `    ${sanitizeText(line, 512)}`)]

function factsOf(result: Result): [name: string, value: string][] {
  const { verdict, evidence } = result
  const { means, todo } = REASON_TEXTS[verdict.reason]
  const retryAfter = retryAfterSeconds(result)
  const facts: [string, string | null][] = [
    ['reason', `${verdict.reason} (risk ${verdict.risk}, confidence ${verdict.confidence})`],
    ['means', means],
    ['to do', todo],
    [
      'suggestion',
      evidence.suggestion === null ? null : `did you mean ${sanitizeText(evidence.suggestion)}?`,
    ],
    ['ask again', retryAfter === null ? null : `in ${formatDuration(retryAfter * SECOND)}`],
    ['how we know', howWeKnow(evidence)],
    ['mail server', mailServer(evidence)],
    ['it said', replyText(evidence)],
    ['catch-all', evidence.catchAll === null ? null : evidence.catchAll ? 'yes' : 'no'],
    ['traits', flagTexts(evidence)],
    ['time', `${result.tookMs} ms${result.cached ? ', from memory' : ''}`],
  ]
  return facts.filter((fact): fact is [string, string] => fact[1] !== null)
}

function howWeKnow(evidence: Evidence): string | null {
  const { address, route, answer, failure } = evidence
  if (failure !== null) return sanitizeText(failure)
  if (isFault(address)) return `${address.message} (${address.rule})`
  if (answer?.kind === 'no-response')
    return `${describeOutcome(answer)} (${sanitizeText(answer.detail)})`
  if (answer !== null) return describeOutcome(answer)
  if (evidence.skipped === 'literal') return 'an address literal names a machine, not a mail domain'
  if (evidence.skipped === 'unwanted') return 'you asked for no question to the mail server'
  if (evidence.skipped === 'sandbox') return 'simulated: nobody was asked'
  return route === null ? null : noMailText(route)
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
