import type { Address, SyntaxFault } from '../address/address.ts'
import type { AddressFlags } from '../address/classifier.ts'
import type { MxOperator } from '../dns/operators.ts'
import type { Route } from '../dns/route.ts'
import type { RecipientOutcome } from '../smtp/classify-reply.ts'
import type { Class, Reason, Risk } from './reason.ts'

export { CLASSES, type Class, toClass } from './reason.ts'

/** All facts about an address; null if not determined. Plain data, serializable as JSON. */
export type Evidence = {
  readonly address: Address | SyntaxFault
  readonly flags: AddressFlags | null
  /** The address that was possibly intended. */
  readonly suggestion: string | null
  /** Whether the domain misspells a large provider, and how certainly; null if it does not. */
  readonly typo: 'certain' | 'likely' | null
  /** True if the exchanger belongs to a disposable email service. */
  readonly disposableHost: boolean
  readonly route: Route | null
  readonly operator: MxOperator | null
  readonly answer: RecipientOutcome | null
  readonly catchAll: boolean | null
  /** The egress of the probe. */
  readonly egress: string | null
  /** The exchanger of the session; `ip` is its address. */
  readonly host: string | null
  readonly ip: string | null
  readonly tls: boolean
  readonly timings: Timings
  /** Why the SMTP check was skipped, if it was possible. */
  readonly skipped: Skipped | null
  /** The message of an internal error. */
  readonly failure: string | null
  /** The lines of the SMTP session, if requested. */
  readonly dialogue: readonly string[] | null
  /** Signals from outside the SMTP session; omitted if none were looked for. */
  readonly signals?: readonly Signal[]
  /** The newest report about the address; omitted if there is none. */
  readonly feedback?: FeedbackEvidence
  /** The reports about a catch-all domain; omitted if there are too few. */
  readonly domainFeedback?: DomainFeedback
  /** What another service said about the address; omitted if ev has checked it. */
  readonly external?: ExternalEvidence
  /** The measurement of the confidence; omitted if the confidence is fixed. */
  readonly calibration?: CalibrationEvidence
}

/**
 * `policies`: SPF, DMARC and MTA-STS of the domain. `parking`: the exchanger belongs to a parking
 * service or is not a mail server. `typo-network`: it also serves misspellings of large providers.
 * `gravatar`: the address has a profile.
 */
export type SignalName = 'policies' | 'parking' | 'typo-network' | 'gravatar'

/** A hint from outside the SMTP session. */
export type Signal = {
  readonly name: SignalName
  /** Points that it adds to the confidence that the address is not deliverable. */
  readonly shift: number
  /** A sentence. */
  readonly detail: string
}

/** The newest report about an address. */
type FeedbackEvidence = {
  readonly kind: 'delivered' | 'bounced' | 'complained'
  /** Epoch ms. */
  readonly occurredAt: number
  readonly code: number | null
  readonly enhancedCode: string | null
  readonly text: string | null
  /** Whether it decided the verdict: no newer evidence contradicts it. */
  readonly decides: boolean
}

/** The services whose results are recognized; `ev` for its own exports. */
export const EXTERNAL_SOURCES = ['zerobounce', 'neverbounce', 'kickbox', 'reacher', 'ev'] as const

export type ExternalSource = (typeof EXTERNAL_SOURCES)[number]

/** A result that the list brought with it, in the words of the service. ev has checked nothing. */
type ExternalEvidence = {
  readonly by: ExternalSource
  readonly status: string
  readonly detail: string | null
}

/** Numbers of addresses of a domain, and the interval of its bounce rate. */
type DomainFeedback = {
  readonly delivered: number
  readonly bounced: number
  readonly rateMin: number
  readonly rateMax: number
}

/** Verdicts with a known outcome, weighted by their age. */
type CalibrationEvidence = {
  /** The fixed confidence of the reason. */
  readonly fixed: number
  readonly reason: CalibrationLevel
  /** Null without verdicts of the operator. */
  readonly operator: CalibrationLevel | null
  /** Null without reports about the domain, and for a domain that is not a catch-all. */
  readonly domain: CalibrationLevel | null
}

/** Verdicts with a known outcome, and how much the level above weighs against them. */
type CalibrationLevel = {
  readonly correct: number
  readonly total: number
  /** The share of the level above counts as this many verdicts. */
  readonly priorWeight: number
  /** After this time a count has half its weight; null if counts do not age. */
  readonly halfLifeDays: number | null
  /** How much of the share is the extrapolation of its trend; null if counts do not age. */
  readonly trend: number | null
}

/** Durations in ms; null if the step did not happen. */
type Timings = { readonly dnsMs: number | null; readonly connectMs: number | null }

/**
 * `literal`: an address literal has no domain. `unwanted`: disabled by the caller. `sandbox`:
 * simulated. `finished`: the list was finished before its turn.
 */
type Skipped = 'literal' | 'unwanted' | 'sandbox' | 'finished'

export type Verdict = {
  /** A result that an earlier version stored has none: `toClass` returns it for every result. */
  readonly class: Class
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

/** A verdict with the facts of its run: the source of CSV rows, JSON and terminal output. */
export type Result = {
  /** The address as in the request. */
  readonly email: string
  /** The domain of the address; null if it has none. */
  readonly provider: string | null
  readonly verdict: Verdict
  readonly evidence: Evidence
  readonly tookMs: number
  readonly cached: boolean
  /** When the answer was determined, epoch ms. */
  readonly checkedAt: number
}

/** The reason shown if only the class is stored, as for an erased address: its most common case. */
export const DEFAULT_REASON_BY_CLASS = {
  deliverable: 'accepted_email',
  risky: 'low_deliverability',
  undeliverable: 'rejected_email',
  unknown: 'unavailable_smtp',
} as const satisfies Record<Class, Reason>

/** Whether an internal error ended the verification; it says nothing about the address. */
export const isFailure = ({ reason }: Verdict) => reason === 'unexpected_error'
