import type { Address, SyntaxFault } from '../address/address.ts'
import type { AddressFlags } from '../address/classifier.ts'
import type { MxOperator } from '../dns/operators.ts'
import type { Route } from '../dns/route.ts'
import type { RecipientOutcome } from '../smtp/classify-reply.ts'
import type { Reason, Risk } from './reason.ts'

/** All that is known of an address; what was not asked is null. Plain data, fit for JSON. */
export type Evidence = {
  readonly address: Address | SyntaxFault
  readonly flags: AddressFlags | null
  /** A whole address that was perhaps meant. */
  readonly suggestion: string | null
  /** How surely the domain misspells a large provider's; null: it does not. */
  readonly typo: 'certain' | 'likely' | null
  /** True when the exchanger is one that disposable services use. */
  readonly disposableHost: boolean
  readonly route: Route | null
  readonly operator: MxOperator | null
  readonly answer: RecipientOutcome | null
  readonly catchAll: boolean | null
  /** The source identity of ours that asked. */
  readonly egress: string | null
  /** The exchanger that was spoken with, and where. */
  readonly host: string | null
  readonly ip: string | null
  readonly tls: boolean
  readonly timings: Timings
  /** Why no mail server was asked, where one could have been. */
  readonly skipped: Skipped | null
  /** What went wrong inside ev. */
  readonly failure: string | null
  /** The lines said, when asked for. */
  readonly dialogue: readonly string[] | null
}

/** In ms; null: did not happen. */
export type Timings = { readonly dnsMs: number | null; readonly connectMs: number | null }

/** `literal`: an address literal names no domain. `unwanted`: the caller asked for no SMTP. `sandbox`: simulated. */
export type Skipped = 'literal' | 'unwanted' | 'sandbox'

export type Verdict = {
  readonly valid: boolean
  readonly deliverable: boolean
  readonly risk: Risk
  readonly reason: Reason
  readonly confidence: number
  readonly details: {
    readonly syntaxValid: boolean
    readonly domainExists: boolean
    readonly mxRecord: boolean
    readonly smtpValid: boolean
  }
}

/** A verdict with the facts of its run; CSV row, JSON and terminal view present it and nothing more. */
export type Result = {
  /** The address as it was asked. */
  readonly email: string
  /** The domain of the address; null when it has none. */
  readonly provider: string | null
  readonly verdict: Verdict
  readonly evidence: Evidence
  readonly tookMs: number
  readonly cached: boolean
  /** When it was found out, epoch ms. */
  readonly checkedAt: number
}

/** The four classes by which results are counted and filtered. */
export type Class = 'deliverable' | 'risky' | 'undeliverable' | 'unknown'

export function toClass<V extends Pick<Verdict, 'valid' | 'risk'>>({ valid, risk }: V): Class {
  if (risk === 'unknown') return 'unknown'
  if (!valid) return 'undeliverable'
  return risk === 'low' ? 'deliverable' : 'risky'
}

/** What is told where only the class is left, as of an erased address: the plainest case of it. */
export const DEFAULT_REASON_BY_CLASS = {
  deliverable: 'accepted_email',
  risky: 'low_deliverability',
  undeliverable: 'rejected_email',
  unknown: 'unavailable_smtp',
} as const satisfies Record<Class, Reason>

/** Something inside ev ended it: nothing is said of the address. */
export const isFailure = ({ reason }: Verdict) => reason === 'unexpected_error'
