import { toEvidence } from '../../src/engine/verdict/judge.ts'
import { type Reason, VERDICT_BY_REASON } from '../../src/engine/verdict/reason.ts'
import type { Result } from '../../src/engine/verdict/verdict.ts'

/** Builds a result with this reason. */
export function resultOf(reason: Reason, facts: Partial<Result> = {}): Result {
  const { details, ...opinion } = VERDICT_BY_REASON[reason]
  const kind = { ascii: 'good.test', unicode: 'good.test', kind: 'special' as const }
  return {
    email: 'ann@good.test',
    provider: 'good.test',
    verdict: { ...opinion, reason, details: { ...details, smtpValid: details.smtpValid ?? true } },
    evidence: toEvidence({ address: { text: 'ann@good.test', local: 'ann', domain: kind } }),
    tookMs: 1,
    cached: false,
    checkedAt: 0,
    ...facts,
  }
}

/** Whether only rows of lists have a reason. */
export const isOfLists = (reason: string) =>
  reason === 'no_address' || reason.startsWith('external_')

/** The fields of a result of section 2.1 of the interface in their order, the class and the action. */
export const RESULT_NAMES = [
  ...['email', 'valid', 'deliverable', 'risk_level', 'provider', 'response_time', 'confidence'],
  ...['details', 'reason', 'cached', 'class', 'action', 'action_reason'],
]
