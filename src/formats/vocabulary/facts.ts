import { isFault } from '../../engine/address/address.ts'
import { getMxHost, presentAddressFlags } from '../../engine/verdict/present-result.ts'
import type { Reason, Risk } from '../../engine/verdict/reason.ts'
import { VERDICT_BY_REASON } from '../../engine/verdict/reason.ts'
import {
  type Class,
  DEFAULT_REASON_BY_CLASS,
  type Result,
  type Verdict,
} from '../../engine/verdict/verdict.ts'

/** A row of a list. */
export type VocabularyRow = {
  /** The address; empty if it was erased. */
  readonly email: string
  readonly class: Class
  /** Null if the address was erased; only its class is left. */
  readonly result: Result | null
}

/** What the columns of other services are made from; null where it is not known. */
export type Facts = {
  readonly email: string
  /** The parts of the address; null if it is malformed. */
  readonly local: string | null
  readonly domain: string | null
  readonly class: Class
  readonly reason: Reason
  readonly risk: Risk
  readonly details: Verdict['details'] | null
  readonly isDisposable: boolean | null
  readonly isRole: boolean | null
  readonly isFree: boolean | null
  readonly isCatchAll: boolean | null
  readonly suggestion: string | null
  readonly mxHost: string | null
}

export function toFacts({ email, class: klass, result }: VocabularyRow): Facts {
  if (result === null) return erasedFacts(email, klass)
  const { verdict, evidence } = result
  const { address } = evidence
  const flags = presentAddressFlags(evidence)
  return {
    email,
    local: isFault(address) ? null : address.local,
    domain: isFault(address) ? null : address.domain.ascii,
    class: klass,
    reason: verdict.reason,
    risk: verdict.risk,
    details: verdict.details,
    isDisposable: flags.is_disposable,
    isRole: flags.is_role,
    isFree: flags.is_free,
    isCatchAll: flags.is_catch_all,
    suggestion: evidence.suggestion,
    mxHost: getMxHost(evidence),
  }
}

function erasedFacts(email: string, klass: Class): Facts {
  const reason = DEFAULT_REASON_BY_CLASS[klass]
  return {
    email,
    local: null,
    domain: null,
    class: klass,
    reason,
    risk: VERDICT_BY_REASON[reason].risk,
    details: null,
    isDisposable: null,
    isRole: null,
    isFree: null,
    isCatchAll: null,
    suggestion: null,
    mxHost: null,
  }
}
