import type { Address } from '../address/address.ts'
import type { AddressFlags } from '../address/classifier.ts'
import { toEvidence } from './judge.ts'
import { VERDICT_BY_REASON } from './reason.ts'
import type { ExternalSource, Result } from './verdict.ts'

// External results: those of another service, or of an earlier export of ev, that a list brought
// with it. They keep their rows from being verified, and never look like results of a verification:
// they have reasons of their own, and no detail of them counts as checked.

/** The names of the services, for people. */
export const SOURCE_TITLES: Readonly<Record<ExternalSource, string>> = {
  zerobounce: 'ZeroBounce',
  neverbounce: 'NeverBounce',
  kickbox: 'Kickbox',
  reacher: 'Reacher',
  ev: 'an earlier export of ev',
}

/** The reasons of external results. */
const EXTERNAL_REASONS = [
  'external_deliverable',
  'external_risky',
  'external_do_not_mail',
  'external_undeliverable',
  'external_unknown',
] as const

export type ExternalReason = (typeof EXTERNAL_REASONS)[number]

/** What a row of a list says about its address. */
export type ExternalResult = {
  readonly by: ExternalSource
  readonly reason: ExternalReason
  /** The word of the service. */
  readonly status: string
  /** Its second word, such as a sub-status; null if it has none. */
  readonly detail: string | null
  /** When the service checked the address, epoch ms. */
  readonly checkedAt: number
}

type AddressFacts = {
  /** The address as the list has it. */
  readonly text: string
  readonly address: Address
  readonly flags: AddressFlags | null
}

/** Builds the result of an address that keeps its external result. */
export function fromExternal(
  { text, address, flags }: AddressFacts,
  { by, reason, status, detail, checkedAt }: ExternalResult,
): Result {
  const { details, ...template } = VERDICT_BY_REASON[reason]
  return {
    email: text,
    provider: address.domain.ascii,
    verdict: { ...template, reason, details: { ...details, smtpValid: false } },
    evidence: toEvidence({ address, flags, external: { by, status, detail } }),
    tookMs: 0,
    cached: false,
    checkedAt,
  }
}
