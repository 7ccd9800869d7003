import type { Clock } from '../../platform/clock.ts'
import { isFault } from '../address/address.ts'
import { judge } from './judge.ts'
import type { Evidence, Result } from './verdict.ts'

/** Returns evidence with defaults for everything that was not determined. */
export function toEvidence(facts: Partial<Evidence> & Pick<Evidence, 'address'>): Evidence {
  return {
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
    ...facts,
  }
}

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
