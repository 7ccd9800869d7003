import type { Clock } from '../../platform/clock.ts'
import { isFault } from '../address/address.ts'
import { judge } from './judge.ts'
import type { Evidence, Result } from './verdict.ts'

/** Evidence with everything unsaid left at "not asked". */
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

/** Evidence judged, with the facts of its run. */
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
