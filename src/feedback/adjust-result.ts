import { type Reason, type Risk, toClass, VERDICT_BY_REASON } from '../engine/verdict/reason.ts'
import type { Result, Verdict } from '../engine/verdict/verdict.ts'
import { posteriorMean } from './beta-binomial.ts'
import { calibrate, wilsonInterval } from './calibration.ts'
import type { CalibrationModel } from './calibration-model.ts'
import type { DomainCount } from './feedback-counts.ts'
import type { AddressState } from './feedback-store.ts'

/** The feedback and the measurements that apply to one result. */
export type Knowledge = {
  readonly state: AddressState | null
  readonly domain: DomainCount | null
  /** Null if calibration is off. */
  readonly model: CalibrationModel | null
}

/** Fewer reported addresses of a catch-all domain say nothing about the others. */
export const DOMAIN_TOTAL_MIN = 10
/** A catch-all domain has low risk if its bounce rate is below this, with a probability of 97.5 %. */
export const LOW_BOUNCE_RATE_MAX = 0.1
/** It has high risk if its bounce rate is above this, with the same probability. */
export const HIGH_BOUNCE_RATE_MIN = 0.3

/**
 * Weight of the prior of a domain without measurements: a uniform distribution (rule of
 * succession).
 */
const DOMAIN_PRIOR_WEIGHT = 2

/** Reasons of a server that accepts existing mailboxes only. */
export const ACCEPTED: ReadonlySet<Reason> = new Set([
  ...(['accepted_email', 'role_account', 'possible_typo', 'low_quality'] as const),
])
/** Reasons that leave open whether the mailbox exists, as nothing was probed or learned. */
const OPEN: ReadonlySet<Reason> = new Set([
  ...(['catch_all', 'low_deliverability', 'dns_error', 'no_connect', 'timeout'] as const),
  ...(['unavailable_smtp', 'invalid_smtp', 'greylisted', 'probe_blocked', 'smtp_skipped'] as const),
  ...(['external_deliverable', 'external_risky', 'external_unknown'] as const),
])
/** Reasons of a server that rejects the mailbox. */
export const REJECTED: ReadonlySet<Reason> = new Set(['rejected_email', 'mailbox_disabled'])

/** Reasons whose verdict says whether mail arrives, so that feedback can confirm or refute it. */
export const CALIBRATED: ReadonlySet<Reason> = new Set([
  ...ACCEPTED,
  ...REJECTED,
  ...(['catch_all', 'low_deliverability', 'invalid_domain', 'no_mx_record'] as const),
  'does_not_accept_mail',
])

/** Applies feedback to a result. A pure function. */
export function adjustResult(result: Result, { state, domain, model }: Knowledge): Result {
  const feedback = state === null || state.outcome === null ? null : state
  const decided = feedback === null ? null : decideByAddress(result, feedback)
  const evidence = {
    ...result.evidence,
    ...(feedback === null ? {} : { feedback: feedbackEvidence(feedback, decided !== null) }),
  }
  if (decided !== null) return { ...result, evidence, verdict: decided }
  const byDomain = decideByDomain(result.verdict, domain)
  const judged =
    byDomain === null
      ? { ...result, evidence }
      : {
          ...result,
          verdict: byDomain.verdict,
          evidence: { ...evidence, domainFeedback: byDomain.observed },
        }
  return calibrateResult(judged, { domain, model })
}

/** The name of a verdict in the counts: one that its domain decided is counted by its risk. */
export const countedReason = ({ verdict: { reason, risk }, evidence }: Result): string =>
  evidence.domainFeedback === undefined ? reason : `${reason}/${risk}`

/** Returns the verdict if the feedback decides; null if newer evidence does. */
function decideByAddress(
  { verdict, evidence, checkedAt }: Result,
  { outcome, occurred_at: occurredAt, contradicted }: AddressState,
): Verdict | null {
  const { reason } = verdict
  const isNewer = (occurredAt ?? 0) >= checkedAt
  if (outcome === 'dead') {
    // A server that accepted the address before its mail bounced proves nothing by accepting it.
    const isRefuted = OPEN.has(reason) || (ACCEPTED.has(reason) && (isNewer || contradicted === 1))
    return isRefuted ? decidedVerdict('rejected_email', verdict) : null
  }
  if (reason === 'catch_all')
    return { ...verdict, class: 'deliverable', risk: 'low', deliverable: true, confidence: FIRM }
  const isRejected = REJECTED.has(reason) || reason === 'external_undeliverable'
  if (!OPEN.has(reason) && !(isRejected && isNewer)) return null
  return decidedVerdict(evidence.flags?.role === true ? 'role_account' : 'accepted_email', verdict)
}

const FIRM = VERDICT_BY_REASON.accepted_email.confidence

/** The verdict of a reason. Its details stay those of the check: a report tests neither DNS nor SMTP. */
function decidedVerdict(
  reason: 'rejected_email' | 'accepted_email' | 'role_account',
  { details }: Verdict,
): Verdict {
  const smtpValid = details.smtpValid && reason !== 'rejected_email'
  return { ...VERDICT_BY_REASON[reason], reason, details: { ...details, smtpValid } }
}

/** The risk of a catch-all domain by its observed bounce rate; null without enough feedback. */
function decideByDomain(verdict: Verdict, domain: DomainCount | null) {
  if (verdict.reason !== 'catch_all' || domain === null) return null
  const { alive, dead } = domain
  const total = alive + dead
  if (total < DOMAIN_TOTAL_MIN) return null
  const { low, high } = wilsonInterval(dead, total)
  const observed = { delivered: alive, bounced: dead, rateMin: low, rateMax: high }
  const risk: Risk =
    high <= LOW_BOUNCE_RATE_MAX ? 'low' : low >= HIGH_BOUNCE_RATE_MIN ? 'high' : 'medium'
  const deliverable = risk === 'low'
  const correct = deliverable ? alive : dead
  const confidence = Math.round(100 * posteriorMean({ correct, total }, 0.5, DOMAIN_PRIOR_WEIGHT))
  const resultClass = toClass({ valid: verdict.valid, risk })
  return { observed, verdict: { ...verdict, class: resultClass, risk, deliverable, confidence } }
}

function calibrateResult(
  result: Result,
  { domain, model }: Pick<Knowledge, 'domain' | 'model'>,
): Result {
  const { verdict, evidence } = result
  if (model === null || !CALIBRATED.has(verdict.reason)) return result
  // The confidence of a verdict that its domain decided is measured already.
  const fixed =
    evidence.domainFeedback === undefined
      ? verdict.confidence
      : VERDICT_BY_REASON[verdict.reason].confidence
  const measured = calibrate(model, {
    reason: verdict.reason,
    deliverable: verdict.deliverable,
    fixed,
    domain,
    operator: evidence.operator?.name ?? null,
  })
  if (measured === null) return result
  const { confidence, ...calibration } = measured
  return { ...result, verdict: { ...verdict, confidence }, evidence: { ...evidence, calibration } }
}

const feedbackEvidence = (state: AddressState, decides: boolean) => ({
  kind: state.kind ?? 'delivered',
  occurredAt: state.occurred_at ?? 0,
  code: state.code,
  enhancedCode: state.enhanced_code,
  text: state.text,
  decides,
})
