import { HOUR, MINUTE, SECOND } from '../../platform/clock.ts'
import { DNS_RETRY_BUDGET_MS } from '../dns-pause.ts'
import { UNSERVED_MAX_MS } from '../rate-control/rules.ts'
import type { NoResponseReason, RecipientOutcome } from '../smtp/classify-reply.ts'
import type { Result } from '../verdict/verdict.ts'
import type { Acceptance } from './mx-groups.ts'

/**
 * How often a server is asked about an item: greylists accept the second or third attempt. Also how
 * often an item is looked up whose lookup fails.
 */
export const TRIES_MAX = 3
/** One more for a catch-all test: a recipient accepted at the last attempt still needs one. */
const CATCH_ALL_TRIES_MAX = TRIES_MAX + 1
/** How long an item is retried. Its result is final then, or earlier after the last attempt. */
const TOTAL_WAIT_MAX_MS = UNSERVED_MAX_MS
/** The default of postgrey and of most greylists. */
const GREYLIST_DELAY_MS = 5 * MINUTE
/**
 * A failed lookup is repeated after this time: the name servers of a domain restart, and resolvers
 * keep a failure for up to a minute.
 */
export const LOOKUP_DELAY_MS = MINUTE
/** A host that was lost is dialed this often, for as long as it counts as lost. */
const LOST_HOST_DELAY_MS = 5 * MINUTE
/** A limit of ev is free again as soon as the connections before have closed. */
const OWN_LIMIT_DELAY_MS = 10 * SECOND
/** An outcome may be older than the end of a block, and the dials of others tell first. */
const UNCERTAIN_DELAY_MIN_MS = SECOND
/** The longest delay before one retry, whatever the server requests. */
const DELAY_MAX_MS = HOUR

/**
 * Number of internal failures after which an address of a list gets a failure as its result. After
 * the first one it is probed separately, because it may be the cause.
 */
export const FAULTS_MAX = 3

/** The earlier attempts for an item of a list. */
export type AttemptHistory = {
  /** How often its current egress probed a server for it. */
  readonly tries: number
  /** Time since it was first ready to be probed, in ms. */
  readonly waitedMs: number
  /** The egress that must probe it, because greylists store IP, sender and recipient; null: any. */
  readonly egress: string | null
  /** The egresses that were blocked when they probed it. */
  readonly refusedBy: readonly string[]
}

/** The result of this attempt and the egress that made it. */
export type Outcome = {
  readonly result: Result
  /** False if no server was probed. */
  readonly asked: boolean
  readonly egress: string
  /** True if only a backup MX that accepts every local part accepted it. */
  readonly isBackupOnly?: boolean
  /** True if its host does not answer catch-all tests. */
  readonly isUntestable?: boolean
  /** True if no host could be dialed, and one of them had served us recently. */
  readonly isLost?: boolean | undefined
}

/** What the list and the egress pool allow. */
type RetryRules = {
  /** False if items that should be retried later keep their current result. */
  readonly wait: boolean
  /** If set, overrides the delay that the server requests. */
  readonly greylistDelayMs: number | null
  /** Returns the egresses that may probe the operator now, the preferred one first. */
  readonly available: () => readonly string[]
  /**
   * Returns the time until it is known whether this egress reaches mail servers, 0 if its next dial
   * tells; null if it is known.
   */
  readonly uncertainForMs: () => number | null
  /** Returns the time until the next DNS check; null while the DNS server is trusted. */
  readonly dnsUncertainForMs: () => number | null
  /** Returns how much longer the operator or domain counts as blocking this egress; 0 if not. */
  readonly refusedForMs: () => number
  /** Returns how long the operator or domain has refused every recipient of this egress. */
  readonly unservedForMs: () => number
  /** Returns how long ago the operator last served a recipient; infinite if it has not. */
  readonly servedAgoMs: () => number
}

/** The next attempt for an item of a list, with its updated history. */
export type Retry = Omit<AttemptHistory, 'waitedMs'> & {
  readonly delayMs: number
  /** The earlier acceptance if only the catch-all test of the domain is repeated; else null. */
  readonly accepted: Acceptance | null
}

/** Whether the result is final: `nextRetry` returns null then. */
export function isDecided({ result, isBackupOnly = false, isUntestable }: Outcome): boolean {
  const { answer } = result.evidence
  if (answer?.kind === 'rejected') return true
  const isTested = isUntestable || untestedAcceptance(result) === null
  return answer?.kind === 'accepted' && isTested && !isBackupOnly
}

/**
 * Returns how to retry an item of a list: with another egress at once, or with the same one later.
 * Returns null if its result is final.
 */
export function nextRetry(
  outcome: Outcome,
  history: AttemptHistory,
  rules: RetryRules,
): Retry | null {
  const other = retryWithOtherEgress(outcome, history, rules)
  if (other !== null || !rules.wait) return other
  return (
    retryLater(outcome, history, rules) ??
    retryWhenBlockEnds(outcome, history, rules) ??
    retryWhenKnown(outcome, history, rules) ??
    retryLookup(outcome, history, rules) ??
    retryLostHost(outcome, history)
  )
}

/**
 * Returns an egress that can replace those in `refusedBy`, the last of which got this answer.
 * Returns null if the answer does not depend on the egress, or if no egress is left.
 */
export function alternativeEgress(
  refusedBy: readonly string[],
  answer: RecipientOutcome,
  available: () => readonly string[],
): string | null {
  if (!isEgressSpecific(answer, refusedBy.length)) return null
  return available().find(name => !refusedBy.includes(name)) ?? null
}

/**
 * A TLS demand that cannot be met is the same for all egresses; a host that two cannot reach is
 * down.
 */
function isEgressSpecific(answer: RecipientOutcome, tried: number): boolean {
  if (answer.kind === 'blocked') return answer.why !== 'tls'
  if (answer.stage !== 'connect' || tried >= 2) return false
  return answer.why === 'connect' || answer.why === 'timeout'
}

/** Retries with another egress at once. It is another sender, so its attempt count starts at 0. */
function retryWithOtherEgress(
  { result, egress }: Outcome,
  history: AttemptHistory,
  { available }: RetryRules,
): Retry | null {
  const { answer } = result.evidence
  const refusedBy = [...history.refusedBy, egress]
  const other = answer === null ? null : alternativeEgress(refusedBy, answer, available)
  if (other === null) return null
  return { delayMs: 0, tries: 0, egress: other, refusedBy, accepted: null }
}

function retryLater(outcome: Outcome, history: AttemptHistory, rules: RetryRules): Retry | null {
  const { result, asked, egress } = outcome
  const tries = history.tries + (asked ? 1 : 0)
  const { refusedBy } = history
  const waitedMs = getWaitedMs(history, rules)
  const delayMs = retryAfter(outcome, { count: tries, waitedMs }, rules.greylistDelayMs)
  if (delayMs === null) return null
  const accepted = untestedAcceptance(result)
  // A greylist knows the random name from this egress; if it could not probe, another one may.
  const other = accepted === null ? history.egress : null
  return { delayMs, tries, egress: asked ? egress : other, refusedBy, accepted }
}

/** Retries an item that was not probed because of a block, with any egress once the block ends. */
function retryWhenBlockEnds(
  { result, asked }: Outcome,
  history: AttemptHistory,
  rules: RetryRules,
): Retry | null {
  if (asked || result.evidence.answer?.kind !== 'blocked') return null
  if (getWaitedMs(history, rules) >= TOTAL_WAIT_MAX_MS) return null
  const delayMs = Math.min(rules.refusedForMs(), DELAY_MAX_MS)
  const egress = history.refusedBy.length > 0 ? null : history.egress
  const accepted = untestedAcceptance(result)
  return { delayMs, tries: history.tries, egress, refusedBy: [], accepted }
}

/**
 * Returns how long an item has waited in vain. While the operator serves others, it waits for its
 * turn; an operator that has refused us for long is not asked again for each later item.
 */
function getWaitedMs({ waitedMs }: AttemptHistory, rules: RetryRules): number {
  return Math.max(Math.min(waitedMs, rules.servedAgoMs()), rules.unservedForMs())
}

/**
 * Retries an item that met a possible network or DNS outage, so that a list does not fail with it.
 */
function retryWhenKnown(
  { result }: Outcome,
  history: AttemptHistory,
  rules: RetryRules,
): Retry | null {
  const { answer } = result.evidence
  if (answer?.kind !== 'no-response') return null
  const delayMs = uncertaintyDelay(answer.why, history, rules)
  if (delayMs === null) return null
  const { tries, egress, refusedBy } = history
  return { delayMs, tries, egress, refusedBy, accepted: null }
}

function uncertaintyDelay(
  why: NoResponseReason,
  { waitedMs }: AttemptHistory,
  rules: RetryRules,
): number | null {
  if (why === 'connect') {
    const uncertainForMs = rules.uncertainForMs()
    return uncertainForMs === null ? null : Math.max(uncertainForMs, UNCERTAIN_DELAY_MIN_MS)
  }
  return why === 'dns' && waitedMs < DNS_RETRY_BUDGET_MS ? rules.dnsUncertainForMs() : null
}

/** Retries an item whose hosts have addresses that could not be looked up. It counts as an attempt. */
function retryLookup(
  { result }: Outcome,
  history: AttemptHistory,
  rules: RetryRules,
): Retry | null {
  const { answer } = result.evidence
  const tries = history.tries + 1
  if (answer?.kind !== 'no-response' || answer.why !== 'dns' || tries >= TRIES_MAX) return null
  if (rules.dnsUncertainForMs() !== null) return null
  const { egress, refusedBy } = history
  return { delayMs: LOOKUP_DELAY_MS, tries, egress, refusedBy, accepted: null }
}

/**
 * Retries an item of a host that served us and then accepts no connection: it restarts, or a firewall
 * limits or bans us for a time. Any egress that could not reach it may try again.
 */
function retryLostHost({ result, isLost = false }: Outcome, history: AttemptHistory): Retry | null {
  const isDone = history.waitedMs >= TOTAL_WAIT_MAX_MS
  if (!isLost || isDone || result.evidence.answer?.kind !== 'no-response') return null
  const egress = history.refusedBy.length > 0 ? null : history.egress
  const { tries } = history
  return { delayMs: LOST_HOST_DELAY_MS, tries, egress, refusedBy: [], accepted: null }
}

/** How often an item was probed and how long it has waited. */
type AttemptCount = {
  /** How often a server was probed for it so far, this attempt included. */
  readonly count: number
  /** Time since the first attempt, in ms. */
  readonly waitedMs: number
}

/**
 * Returns how long an item of a list should wait for its next attempt, in ms; null if its result is
 * final. Greylisting, temporary server errors, pauses and limits of ev are retried, and
 * so is an undecided catch-all test, because an acceptance means little without it. A recipient that
 * only a catch-all backup MX accepted is retried too, because the primary hosts may be reachable by
 * then.
 * `greylistDelayMs` overrides the delay that the server requests.
 */
export function retryAfter(
  { result, asked, isBackupOnly = false, isUntestable = false }: Omit<Outcome, 'egress'>,
  tries: AttemptCount,
  greylistDelayMs: number | null,
): number | null {
  const { answer } = result.evidence
  const isUntested = !isUntestable && untestedAcceptance(result) !== null
  const requestedMs = answer === null ? null : requestedDelay(answer)
  if (answer?.kind !== 'deferred' && requestedMs === null && !isUntested && !isBackupOnly)
    return null
  if (tries.waitedMs >= TOTAL_WAIT_MAX_MS) return null
  // A pause is not an attempt, because no server was probed.
  if (!asked) return Math.min(requestedMs ?? GREYLIST_DELAY_MS, DELAY_MAX_MS)
  if (tries.count >= (isUntested ? CATCH_ALL_TRIES_MAX : TRIES_MAX)) return null
  return Math.min(greylistDelayMs ?? requestedMs ?? GREYLIST_DELAY_MS, DELAY_MAX_MS)
}

/** Returns the delay that the server, or a limit of ev, requires; null if neither does. */
function requestedDelay(answer: RecipientOutcome): number | null {
  if (answer.kind === 'deferred') return answer.retryAfterMs
  return answer.why === 'own-limit' ? OWN_LIMIT_DELAY_MS : null
}

/** Returns the acceptance of a recipient whose domain still needs a catch-all test, else null. */
function untestedAcceptance({ evidence, checkedAt, cached }: Result): Acceptance | null {
  const { answer, catchAll, egress, host, ip, tls, timings } = evidence
  if (cached || catchAll !== null || answer?.kind !== 'accepted') return null
  // 251, 252 and restricted mailboxes stay low_deliverability whatever the test says.
  if (answer.why !== 'recipient') return null
  return { answer, egress, host, ip, tls, connectMs: timings.connectMs, at: checkedAt }
}

/** Returns after how many seconds to retry a single verification; null if that would not help. */
export function retryAfterSeconds({ verdict, evidence }: Result): number | null {
  const { answer } = evidence
  if (answer === null) return null
  const delayMs =
    requestedDelay(answer) ?? (verdict.reason === 'greylisted' ? GREYLIST_DELAY_MS : null)
  return delayMs === null ? null : Math.ceil(delayMs / 1_000)
}
