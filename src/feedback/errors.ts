import { formatNumber } from '../platform/format.ts'
import { createErrors, type LabelField } from '../platform/operation-error.ts'
import { formatPlan, sanitizeText } from '../platform/text.ts'

const ERRORS = {
  feedback_source_not_found: ({ id }: { readonly id: string }) =>
    `Feedback source ${sanitizeText(id)} does not exist.`,
  feedback_source_limit_reached: ({ count }: { readonly count: number }) =>
    `The account has ${formatNumber(count)} feedback sources, which is the maximum.`,
  feedback_key_rejected: ({ title, keyName, expected }: KeyFacts, label: LabelField) =>
    expected === null
      ? `${label('key')} is not used for ${title}, for which ev creates a password. Omit it.`
      : `${label('key')} must be the ${keyName} of ${title}, ${expected}.`,
  /** A request of an email provider is not authentic or has an unknown form. */
  feedback_request_rejected: ({ fault }: RequestFacts) => fault,
  stored_feedback_exceeded: ({ plan, stored, pieces, max }: StoredFacts) =>
    `The account stores ${formatNumber(stored)} pieces of feedback, ${formatNumber(pieces)} more cannot be recorded, and the ${formatPlan(plan)} allows ${formatNumber(max)}.`,
}

type KeyFacts = {
  /** Name of the provider and of its key, for people. */
  readonly title: string
  readonly keyName: string
  /** Describes a valid key, as the end of a sentence; null if the provider has no key. */
  readonly expected: string | null
}

type RequestFacts = {
  /** `unavailable`: the request can be repeated. */
  readonly kind: 'authentication' | 'body' | 'unavailable'
  /** The problem, as a sentence. */
  readonly fault: string
}

type StoredFacts = {
  readonly plan: string
  readonly stored: number
  /** New pieces of the request. */
  readonly pieces: number
  readonly max: number
}

type Errors = typeof ERRORS

declare module '../platform/operation-error.ts' {
  interface OperationErrors extends Errors {}
}

/** Creates the errors of feedback and its sources. */
export const feedbackError = createErrors(ERRORS)
