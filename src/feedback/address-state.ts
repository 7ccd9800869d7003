import { DAY } from '../platform/clock.ts'
import type { Feedback, Outcome } from './feedback.ts'
import type { DomainChange, VerdictCount } from './feedback-counts.ts'
import type { AddressState } from './feedback-store.ts'

/** The state of an address without feedback and verdict. */
export const newAddressState = (addressKey: string, accountId: string): AddressState => ({
  address_key: addressKey,
  account_id: accountId,
  outcome: null,
  kind: null,
  code: null,
  enhanced_code: null,
  text: null,
  occurred_at: null,
  contradicted: 0,
  reason: null,
  operator: null,
  confidence: null,
  deliverable: null,
  verified_at: null,
  counted: null,
  reply: null,
})

/** Feedback is compared with a verdict that was at most this old: later, mailboxes have changed. */
const VERDICT_AGE_MAX_MS = 30 * DAY
/** Counts are kept by periods of this length, so that old ones weigh less. */
export const PERIOD_MS = 30 * DAY

/** Start of the period of a time, epoch ms. */
export const periodOf = (at: number) => Math.floor(at / PERIOD_MS) * PERIOD_MS

/**
 * Applies one outcome to the state of an address. A verdict is counted with the last outcome within
 * `VERDICT_AGE_MAX_MS`: mail that was delivered at first may bounce later.
 */
export function applyOutcome(
  before: AddressState,
  feedback: Feedback,
): { state: AddressState; counts: VerdictCount[] } {
  if (feedback.occurredAt < (before.occurred_at ?? 0)) return { state: before, counts: [] }
  const { outcome, kind, code, enhancedCode, text, occurredAt } = feedback
  const isCounted = countsFor(before, feedback)
  const counts = isCounted ? verdictCounts(before, outcome as Outcome, occurredAt) : []
  // An outcome of the other kind follows an acceptance that the bounce contradicted.
  const isContradicted =
    outcome === 'dead' && ((isCounted && before.deliverable === 1) || before.contradicted === 1)
  return {
    counts,
    state: {
      ...before,
      outcome,
      kind,
      code,
      enhanced_code: enhancedCode,
      text,
      occurred_at: occurredAt,
      contradicted: Number(isContradicted),
      counted: isCounted ? outcome : before.counted,
    },
  }
}

function countsFor({ verified_at }: AddressState, { occurredAt }: Feedback): boolean {
  if (verified_at === null) return false
  return occurredAt >= verified_at && occurredAt - verified_at <= VERDICT_AGE_MAX_MS
}

/** Counts a verdict with an outcome, and removes its count with the previous one. */
function verdictCounts(state: AddressState, outcome: Outcome, at: number): VerdictCount[] {
  const { reason, operator, confidence, deliverable, counted } = state
  if (reason === null || confidence === null || counted === outcome) return []
  const count = (seen: Outcome, by: 1 | -1): VerdictCount => {
    const isCorrect = (seen === 'alive') === (deliverable === 1)
    return {
      period: periodOf(at),
      reason,
      operator: operator ?? '',
      confidence,
      correct: isCorrect ? by : 0,
      wrong: isCorrect ? 0 : by,
    }
  }
  return counted === null ? [count(outcome, 1)] : [count(counted, -1), count(outcome, 1)]
}

/** Adds the change of an address to the counts of its domain. */
export function countDomain(
  domains: Map<string, DomainChange>,
  domain: string,
  { before, after }: { readonly before: AddressState; readonly after: AddressState },
): void {
  if (before.outcome === after.outcome) return
  const known = domains.get(domain) ?? { alive: 0, dead: 0, catchAllOperator: null }
  const change = (outcome: Outcome) =>
    Number(after.outcome === outcome) - Number(before.outcome === outcome)
  domains.set(domain, {
    domain,
    alive: known.alive + change('alive'),
    dead: known.dead + change('dead'),
    catchAllOperator: catchAllOperator(after) ?? known.catchAllOperator,
  })
}

/** The operator of an address whose last verdict says that its domain is a catch-all, or null. */
const catchAllOperator = ({ reason, operator }: AddressState) =>
  reason?.split('/')[0] === 'catch_all' ? (operator ?? '') : null

/** Adds a count to those of the same verdict. */
export function addVerdictCount(verdicts: Map<string, VerdictCount>, count: VerdictCount): void {
  const { period, reason, operator, confidence } = count
  const key = JSON.stringify([period, reason, operator, confidence])
  const sum = verdicts.get(key)
  verdicts.set(key, {
    ...count,
    correct: count.correct + (sum?.correct ?? 0),
    wrong: count.wrong + (sum?.wrong ?? 0),
  })
}
