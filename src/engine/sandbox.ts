import { hash } from 'node:crypto'
import type { Clock } from '../platform/clock.ts'
import { isFault, parseAddress } from './address/address.ts'
import type { AddressFlags } from './address/classifier.ts'
import { suggestAddress } from './address/suggestion.ts'
import { type Reason, VERDICT_BY_REASON } from './verdict/reason.ts'
import { toEvidence } from './verdict/result.ts'
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
export function sandboxResult(clock: Clock, text: string): Result {
  const address = parseAddress(text)
  const [forReason, forDuration] = isFault(address) ? [0, 0] : digestBytes(text)
  const reason = isFault(address) ? 'invalid_email' : reasonFor(address.local, forReason)
  const { details, ...template } = VERDICT_BY_REASON[reason]
  return {
    email: text,
    provider: isFault(address) ? null : address.domain.ascii,
    verdict: { ...template, reason, details: { ...details, smtpValid: details.smtpValid ?? true } },
    evidence: toEvidence({
      address,
      flags: isFault(address) ? null : simulatedFlags(reason, address.text),
      suggestion: suggestAddress(text),
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
