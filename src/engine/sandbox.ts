import { hash } from 'node:crypto'
import type { Clock } from '../platform/clock.ts'
import { type Address, isFault, parseAddress } from './address/address.ts'
import { canonicalAddress } from './address/canonical.ts'
import type { AddressFlags } from './address/classifier.ts'
import { suggestAddress, suggestForSyntaxError } from './address/suggestion.ts'
import type { Route } from './dns/route.ts'
import { domainStep, type Step, syntaxStep } from './step-observer.ts'
import { toEvidence } from './verdict/judge.ts'
import { type Reason, VERDICT_BY_REASON } from './verdict/reason.ts'
import type { Result } from './verdict/verdict.ts'

/** The reason for each prefix of the local part; the first match wins. */
const BY_PREFIX: readonly [prefix: string, reason: Reason][] = [
  ['error-timeout', 'timeout'],
  ['error-ratelimit', 'unavailable_smtp'],
  ['error-auth', 'probe_blocked'],
  ['error-server', 'unexpected_error'],
  ['invalid', 'rejected_email'],
  ['valid', 'accepted_email'],
  ['risky', 'low_deliverability'],
  ['catchall', 'catch_all'],
  ['disposable', 'disposable_email'],
  ['role', 'role_account'],
  ['timeout', 'timeout'],
  ['greylisted', 'greylisted'],
  ['mailbox-full', 'mailbox_full'],
  ['no-mx', 'no_mx_record'],
  ['typo', 'possible_typo'],
]

/** The reasons of all other addresses: mostly deliverable, as in a typical customer list. */
const REALISTIC: readonly Reason[] = [
  'accepted_email',
  'accepted_email',
  'accepted_email',
  'accepted_email',
  'accepted_email',
  'rejected_email',
  'low_deliverability',
  'catch_all',
  'disposable_email',
  'role_account',
  'timeout',
]

/**
 * Returns a simulated result, selected by the prefix of the local part; opens no socket. The result
 * of an address is deterministic: values that look random derive from its SHA-256.
 */
export function sandboxResult(clock: Clock, text: string, address = parseAddress(text)): Result {
  const [forReason, forDuration] = isFault(address) ? [0, 0] : digestBytes(text)
  const reason = isFault(address) ? 'invalid_email' : reasonFor(address.local, forReason)
  const { details, ...template } = VERDICT_BY_REASON[reason]
  return {
    email: text,
    provider: isFault(address) ? null : address.domain.ascii,
    verdict: { ...template, reason, details: { ...details, smtpValid: details.smtpValid ?? true } },
    evidence: toEvidence({
      address,
      flags: isFault(address) ? null : simulatedFlags(reason, canonicalAddress(address)),
      suggestion: suggestAddress(text, address),
      catchAll: CATCH_ALL[reason] ?? null,
      skipped: 'sandbox',
    }),
    tookMs: 2 + (forDuration % 30),
    cached: false,
    checkedAt: clock.now(),
  }
}

/** Returns the first two bytes of the SHA-256 of a text, ignoring case. */
function digestBytes(text: string): [number, number] {
  const digest = hash('sha256', text.toLowerCase())
  return [Number.parseInt(digest.slice(0, 2), 16), Number.parseInt(digest.slice(2, 4), 16)]
}

function reasonFor(local: string, random: number): Reason {
  const name = local.toLowerCase()
  const found = BY_PREFIX.find(([prefix]) => name.startsWith(prefix))
  if (found !== undefined) return found[1]
  return REALISTIC[random % REALISTIC.length] as Reason
}

/** The catch-all status for reasons that imply one. */
const CATCH_ALL: Readonly<Partial<Record<Reason, boolean>>> = {
  accepted_email: false,
  role_account: false,
  catch_all: true,
}

function simulatedFlags(reason: Reason, canonical: string): AddressFlags {
  return {
    disposable: reason === 'disposable_email',
    role: reason === 'role_account',
    free: false,
    relay: false,
    blocked: false,
    spamTrap: false,
    quality: null,
    canonical,
  }
}

/** Returns the steps that a real verification with this result would have had. */
export function sandboxSteps({ email, evidence, verdict }: Result): Step[] {
  const { address } = evidence
  if (isFault(address)) return [syntaxStep(address, suggestForSyntaxError(email))]
  const syntax = syntaxStep(address, null)
  const { reason } = verdict
  if (address.domain.kind === 'literal' || reason === 'unexpected_error') return [syntax]
  const host = `mx.${address.domain.ascii}`
  const route: Route = NO_MAIL.has(reason)
    ? { kind: 'no-mail' }
    : { kind: 'mx', hosts: [{ preference: 10, host }] }
  const reply = RCPT_REPLIES[reason]
  return [
    syntax,
    simulated(domainStep(address.domain, route, null)),
    ...(reply === undefined ? [] : sessionSteps(address, host, reply)),
  ]
}

const NO_MAIL: ReadonlySet<Reason> = new Set(['no_mx_record'])

/** The reply to RCPT for each reason that comes from a server; null: no reply. */
const RCPT_REPLIES: Readonly<Partial<Record<Reason, string | null>>> = {
  accepted_email: '250 2.1.5 Ok',
  role_account: '250 2.1.5 Ok',
  possible_typo: '250 2.1.5 Ok',
  catch_all: '250 2.1.5 Ok',
  low_deliverability: '252 2.1.5 Cannot verify the user, will try to deliver',
  rejected_email: '550 5.1.1 No such user',
  mailbox_full: '452 4.2.2 Mailbox full',
  greylisted: '450 4.2.0 Greylisted, try again in 300 seconds',
  unavailable_smtp: '451 4.3.0 Try again later',
  probe_blocked: '554 5.7.1 Your address is on a block list',
  timeout: null,
}

function sessionSteps(address: Address, host: string, reply: string | null): Step[] {
  const replyLines = reply === null ? [] : [`S: ${reply}`]
  const lines = [
    `C: MAIL FROM:<>`,
    'S: 250 2.1.0 Ok',
    `C: RCPT TO:<${address.text}>`,
    ...replyLines,
  ]
  return [
    simulated({ kind: 'server', ok: true, host, ip: null, text: `${host} answers.` }),
    ...lines.map((text): Step => ({ kind: 'line', text })),
  ]
}

const simulated = (step: Step): Step => ({ ...step, text: `Simulated: ${step.text}` })
