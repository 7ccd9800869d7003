import type { Clock } from '../../platform/clock.ts'
import { isFault, isMissing } from '../address/address.ts'
import type { RecipientOutcome } from '../smtp/classify-reply.ts'
import {
  INFERRED_REJECTION,
  LEARNED_REJECTION,
  LOOKALIKE_DOMAIN,
  type Reason,
  VERDICT_BY_REASON,
  type VerdictTemplate,
} from './reason.ts'
import type { Evidence, Result, Verdict } from './verdict.ts'

/** The template is that of the reason, unless the rule has its own. */
type Rule = readonly [
  holds: (evidence: Evidence) => boolean,
  reason: Reason,
  template?: VerdictTemplate,
]

/** The verdict rules; the first match wins. */
const RULES: readonly Rule[] = [
  [e => e.failure !== null, 'unexpected_error'],
  [e => isFault(e.address), 'invalid_email'],
  [e => e.flags?.blocked === true, 'blocklisted'],

  [e => e.route?.kind === 'no-domain', 'invalid_domain'],
  [e => e.route?.kind === 'no-mail', 'no_mx_record'],
  [e => e.route?.kind === 'null-mx', 'does_not_accept_mail'],
  [e => e.route?.kind === 'unknown', 'dns_error'],
  [e => noResponse(e, 'no-address'), 'no_mx_record'],
  [e => noResponse(e, 'dns'), 'dns_error'],

  [e => e.flags?.spamTrap === true, 'spam_trap'],
  [e => e.flags?.disposable === true || e.disposableHost, 'disposable_email'],
  [e => e.typo !== null && e.operator?.truth === 'parked', 'possible_typo', LOOKALIKE_DOMAIN],

  [e => rejected(e, 'no-mail'), 'does_not_accept_mail'],
  [e => rejected(e, 'full'), 'mailbox_full'],
  [e => rejected(e, 'disabled'), 'mailbox_disabled'],
  [e => learnedFrom(e) === 'domain', 'rejected_email', LEARNED_REJECTION],
  [e => learnedFrom(e) !== null, 'rejected_email', INFERRED_REJECTION],
  [e => e.answer?.kind === 'rejected', 'rejected_email'],
  [e => e.answer?.kind === 'blocked', 'probe_blocked'],
  [e => e.answer?.kind === 'deferred' && e.answer.why === 'greylist', 'greylisted'],
  [e => e.answer?.kind === 'deferred', 'unavailable_smtp'],
  [e => noResponse(e, 'smtputf8', 'own-limit'), 'smtp_skipped'],
  [e => noResponse(e, 'connect', 'not-public'), 'no_connect'],
  [e => noResponse(e, 'timeout'), 'timeout'],
  [e => noResponse(e, 'closed'), 'unavailable_smtp'],
  [e => e.answer?.kind === 'no-response', 'invalid_smtp'],
  [e => e.answer === null, 'smtp_skipped'],

  [e => isAccepted(e) && e.answer?.why !== 'recipient', 'low_deliverability'],
  [e => e.catchAll === true && e.typo !== null, 'possible_typo', LOOKALIKE_DOMAIN],
  [e => e.catchAll === true, 'catch_all'],
  [e => e.flags?.role === true, 'role_account'],
  // A likely typo only adds a suggestion; the answer of the server decides.
  [e => e.suggestion !== null && e.typo !== 'likely', 'possible_typo'],
  [e => e.flags?.quality === 'low', 'low_quality'],
  // Without a catch-all result, the server may accept every name.
  [e => isAccepted(e) && e.catchAll === null, 'low_deliverability'],
  [isAccepted, 'accepted_email'],
]

/** An answer that no rule knows is never accepted. */
const DEFAULT_RULE: Rule = [() => true, 'unexpected_error']

/** Derives the verdict from the evidence. A pure function. */
export function judge(evidence: Evidence): Verdict {
  const { accepted, other } = JUDGMENTS.find(({ holds }) => holds(evidence)) ?? UNEXPECTED
  const verdict = isAccepted(evidence) ? accepted : other
  if (verdict.reason !== 'unexpected_error') return verdict
  return { ...verdict, details: detailsFound(evidence) }
}

/** The verdict of a rule on an accepted recipient, and on any other. Results share it, so it is frozen. */
type Judgment = {
  readonly holds: Rule[0]
  readonly accepted: Verdict
  readonly other: Verdict
}

function toJudgment([holds, reason, template = VERDICT_BY_REASON[reason]]: Rule): Judgment {
  const { details, ...fields } = template
  const verdictFor = (smtpValid: boolean): Verdict =>
    Object.freeze({
      ...fields,
      reason,
      details: Object.freeze({ ...details, smtpValid: details.smtpValid ?? smtpValid }),
    })
  return { holds, accepted: verdictFor(true), other: verdictFor(false) }
}

const JUDGMENTS: readonly Judgment[] = RULES.map(toJudgment)
const UNEXPECTED = toJudgment(DEFAULT_RULE)

/**
 * Returns the result of a row of a list. A row that is empty or says `n/a` has no address, which is
 * no verdict about one; the same text in the place of a single address is malformed.
 */
export function toRowResult(result: Result): Result {
  const { address } = result.evidence
  if (!isFault(address) || !isMissing(address)) return result
  const { details, ...template } = VERDICT_BY_REASON.no_address
  const verdict = { ...template, details: { ...details, smtpValid: false } }
  return { ...result, verdict: { ...verdict, reason: 'no_address' } }
}

/** After an internal error, returns the details that the evidence proves, without conclusions. */
function detailsFound(evidence: Evidence): Verdict['details'] {
  const { address, route } = evidence
  const hasHost = route?.kind === 'mx' || route?.kind === 'implicit'
  return {
    syntaxValid: !isFault(address),
    domainExists: hasHost || route?.kind === 'no-mail' || route?.kind === 'null-mx',
    mxRecord: hasHost,
    smtpValid: isAccepted(evidence),
  }
}

function isAccepted({ answer }: Evidence): boolean {
  return answer?.kind === 'accepted'
}

type Explanation<K extends RecipientOutcome['kind']> = Extract<RecipientOutcome, { kind: K }>['why']

const noResponse = (
  { answer }: Evidence,
  why: Explanation<'no-response'>,
  or?: Explanation<'no-response'>,
) => answer?.kind === 'no-response' && (answer.why === why || answer.why === or)

const rejected = ({ answer }: Evidence, why: Explanation<'rejected'>) =>
  answer?.kind === 'rejected' && answer.why === why

const learnedFrom = ({ answer }: Evidence) =>
  (answer?.kind === 'rejected' && answer.learned?.scope) || null

/** Evidence of which nothing was determined. */
export const UNDETERMINED: Omit<Evidence, 'address'> = {
  flags: null,
  suggestion: null,
  typo: null,
  disposableHost: false,
  route: null,
  operator: null,
  answer: null,
  catchAll: null,
  egress: null,
  host: null,
  ip: null,
  tls: false,
  timings: { dnsMs: null, connectMs: null },
  skipped: null,
  failure: null,
  dialogue: null,
}

/** Returns evidence with defaults for everything that was not determined. */
export const toEvidence = (facts: Partial<Evidence> & Pick<Evidence, 'address'>): Evidence => ({
  ...UNDETERMINED,
  ...facts,
})

/** Builds a result: the verdict on the evidence, and the facts of the run. */
export function toResult(
  clock: Clock,
  text: string,
  startedAt: number,
  evidence: Evidence,
): Result {
  return {
    email: text,
    provider: isFault(evidence.address) ? null : evidence.address.domain.ascii,
    verdict: judge(evidence),
    evidence,
    tookMs: Math.max(0, Math.round(clock.monotonicNow() - startedAt)),
    cached: false,
    checkedAt: clock.now(),
  }
}
