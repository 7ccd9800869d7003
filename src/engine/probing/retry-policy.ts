import { HOUR, MINUTE } from '../../platform/clock.ts'
import { DNS_RETRY_BUDGET_MS } from '../dns-pause.ts'
import type { Acceptance } from '../probe/mx-groups.ts'
import type { NoResponseReason, RecipientOutcome } from '../smtp/classify-reply.ts'
import type { Result } from '../verdict/verdict.ts'

/** RFC 5321 §4.5.4.1 wants patience; three tries in four hours is what we allow ourselves. */
const TRIES_MAX = 3
/** One more for a catch-all test: a recipient that the last try accepts still has its domain tested. */
const CATCH_ALL_TRIES_MAX = TRIES_MAX + 1
const WAIT_IN_ALL_MAX_MS = 4 * HOUR
/** postgrey's default, and that of most greylists. */
const GREYLIST_DELAY_MS = 5 * MINUTE
/** What a server may make us wait at most for one try. */
const DELAY_MAX_MS = HOUR

/** What an item of a list has been through before it was asked this time. */
export type AttemptHistory = {
  /** How often a server was asked about it by the egress that it is with. */
  readonly tries: number
  /** Since it was ready to be asked for the first time, in ms. */
  readonly waitedMs: number
  /** The egress that must ask it, as greylists know sender, address and recipient together; null: any. */
  readonly egress: string | null
  /** The egresses that were turned away when they were to ask about it. */
  readonly refusedBy: readonly string[]
}

/** What asking brought this time, and through which egress. */
export type Outcome = {
  readonly result: Result
  /** False when no server was asked. */
  readonly asked: boolean
  readonly egress: string
  /** Only a backup that takes every name accepted it. */
  readonly isBackupOnly?: boolean
}

/** What whoever works on the list allows. */
export type RetryRules = {
  /** False: what should be asked again later ends as it is. */
  readonly wait: boolean
  /** When set, it wins over what the server names. */
  readonly greylistDelayMs: number | null
  /** The egresses that may ask the operator at present, best first. */
  readonly available: () => readonly string[]
  /** How long to wait until it is known whether this egress reaches anybody; null: that is known. */
  readonly uncertainForMs: () => number | null
  /** How long to wait for the next DNS check; null while the DNS server is believed. */
  readonly dnsUncertainForMs: () => number | null
  /** How much longer the operator, or the domain, is taken to refuse this egress; 0: it may be asked. */
  readonly refusedForMs: () => number
}

/** How an item of a list is asked again, and what it has been through by then. */
export type Retry = Omit<AttemptHistory, 'waitedMs'> & {
  readonly delayMs: number
  /** What the server said when only the catch-all test of the domain is to be made up for; else null. */
  readonly accepted: Acceptance | null
}

/** A mail server has told all that there is to know: `askAgain` gives null. */
export function isDecided({ result, isBackupOnly = false }: Outcome): boolean {
  const { answer } = result.evidence
  if (answer?.kind === 'rejected') return true
  return answer?.kind === 'accepted' && untestedAcceptance(result) === null && !isBackupOnly
}

/** How an item of a list is asked again: by another egress at once, or by the same one later. Null: its result is final. */
export function nextRetry(outcome: Outcome, past: AttemptHistory, terms: RetryRules): Retry | null {
  if (isDecided(outcome)) return null
  const other = useOtherEgress(outcome, past, terms)
  if (other !== null || !terms.wait) return other
  return (
    retryLater(outcome, past, terms) ??
    retryWhenBlockEnds(outcome, past, terms) ??
    retryWhenKnown(outcome, past, terms)
  )
}

/**
 * The egress to ask through in place of those that were turned away, the last of them with this answer. Null where
 * the answer is not against the egress, or nobody is left to ask.
 */
export function alternativeEgress(
  turnedAway: readonly string[],
  answer: RecipientOutcome,
  available: () => readonly string[],
): string | null {
  if (!mayDifferFromOtherEgress(answer, turnedAway.length)) return null
  return available().find(name => !turnedAway.includes(name)) ?? null
}

/** A demand for TLS that cannot be met is the same for all of us, and a host that two cannot reach is down. */
function mayDifferFromOtherEgress(answer: RecipientOutcome, tried: number): boolean {
  if (answer.kind === 'blocked') return answer.why !== 'tls'
  const isUnreached = answer.kind === 'no-response' && answer.stage === 'connect'
  return isUnreached && (answer.why === 'connect' || answer.why === 'timeout') && tried < 2
}

/** Another egress is another sender: its tries begin anew. */
function useOtherEgress(
  { result, egress }: Outcome,
  past: AttemptHistory,
  { available }: RetryRules,
): Retry | null {
  const { answer } = result.evidence
  const refusedBy = [...past.refusedBy, egress]
  const other = answer === null ? null : alternativeEgress(refusedBy, answer, available)
  if (other === null) return null
  return { delayMs: 0, tries: 0, egress: other, refusedBy, accepted: null }
}

function retryLater(outcome: Outcome, past: AttemptHistory, terms: RetryRules): Retry | null {
  const { result, asked, egress } = outcome
  const tries = past.tries + (asked ? 1 : 0)
  const { waitedMs, refusedBy } = past
  const delayMs = retryAfter(outcome, { count: tries, waitedMs }, terms.greylistDelayMs)
  if (delayMs === null) return null
  const accepted = untestedAcceptance(result)
  // A greylist knows the random name from this egress; where it cannot ask, another one may.
  const other = accepted === null ? past.egress : null
  return { delayMs, tries, egress: asked ? egress : other, refusedBy, accepted }
}

/** Others were refused, so that nobody asked about this one: it is asked when that is believed no more, by anybody. */
function retryWhenBlockEnds(
  { result, asked }: Outcome,
  past: AttemptHistory,
  terms: RetryRules,
): Retry | null {
  const isDone = past.waitedMs >= WAIT_IN_ALL_MAX_MS
  if (asked || isDone || result.evidence.answer?.kind !== 'blocked') return null
  const delayMs = Math.min(terms.refusedForMs(), DELAY_MAX_MS)
  const egress = past.refusedBy.length > 0 ? null : past.egress
  const accepted = untestedAcceptance(result)
  return { delayMs, tries: past.tries, egress, refusedBy: [], accepted }
}

/** Nobody was reached, and perhaps nobody can be just now: a list begun in that moment should not end with it. */
function retryWhenKnown(
  { result }: Outcome,
  past: AttemptHistory,
  terms: RetryRules,
): Retry | null {
  const { answer } = result.evidence
  if (answer?.kind !== 'no-response') return null
  const delayMs = uncertaintyEndsAt(answer.why, past, terms)
  if (delayMs === null) return null
  const { tries, egress, refusedBy } = past
  return { delayMs, tries, egress, refusedBy, accepted: null }
}

function uncertaintyEndsAt(
  why: NoResponseReason,
  { waitedMs }: AttemptHistory,
  terms: RetryRules,
): number | null {
  if (why === 'connect') return terms.uncertainForMs()
  return why === 'dns' && waitedMs < DNS_RETRY_BUDGET_MS ? terms.dnsUncertainForMs() : null
}

/** How often and how long an item was waited for. */
export type AttemptCount = {
  /** How often a server was asked about it so far, this time included. */
  readonly count: number
  /** Since the first time, in ms. */
  readonly waitedMs: number
}

/**
 * How long an item of a list should wait before it is asked again, in ms; null when its result is final.
 * Greylisting, trouble on their side and a pause that the operator wants are worth a wait, and so is a
 * catch-all test that was skipped or came to nothing: until it is decided nobody knows what an accepted
 * recipient is worth. So is a recipient that only a backup accepted which takes every name: the first
 * exchangers may be back by then.
 * `greylistDelayMs`, when set, wins over what the server names.
 */
export function retryAfter(
  { result, asked, isBackupOnly = false }: Omit<Outcome, 'egress'>,
  tries: AttemptCount,
  greylistDelayMs: number | null,
): number | null {
  const { answer } = result.evidence
  const isUntested = untestedAcceptance(result) !== null
  if (answer?.kind !== 'deferred' && !isUntested && !isBackupOnly) return null
  if (tries.waitedMs >= WAIT_IN_ALL_MAX_MS) return null
  const named = answer?.kind === 'deferred' ? answer.retryAfterMs : null
  // A pause is no try: nobody was asked.
  if (!asked) return Math.min(named ?? GREYLIST_DELAY_MS, DELAY_MAX_MS)
  if (tries.count >= (isUntested ? CATCH_ALL_TRIES_MAX : TRIES_MAX)) return null
  return Math.min(greylistDelayMs ?? named ?? GREYLIST_DELAY_MS, DELAY_MAX_MS)
}

/** The acceptance of a recipient whose domain may be a catch-all for all that is known; null for any other result. */
function untestedAcceptance({ evidence, checkedAt, cached }: Result): Acceptance | null {
  const { answer, catchAll, egress, host, ip, tls, timings } = evidence
  if (cached || catchAll !== null || answer?.kind !== 'accepted') return null
  // 251, 252 and restricted mailboxes stay low_deliverability whatever the test says.
  if (answer.why !== 'recipient') return null
  return { answer, egress, host, ip, tls, connectMs: timings.connectMs, at: checkedAt }
}

/** After how many seconds a single verification should be asked again; null when that would not help. */
export function retryAfterSeconds({ verdict, evidence }: Result): number | null {
  const { answer } = evidence
  if (answer?.kind !== 'deferred') return null
  const delayMs =
    answer.retryAfterMs ?? (verdict.reason === 'greylisted' ? GREYLIST_DELAY_MS : null)
  return delayMs === null ? null : Math.ceil(delayMs / 1_000)
}
