/** The 31 reasons of a verdict, each with its verdict template. */

export type Risk = 'low' | 'medium' | 'high' | 'unknown'

/** The classes for counting and filtering results, in the order in which they are shown. */
export const CLASSES = ['deliverable', 'risky', 'undeliverable', 'unknown'] as const

export type Class = (typeof CLASSES)[number]

/** Returns the class of a verdict: what to do with the address. */
export function toClass<V extends Pick<VerdictTemplate, 'valid' | 'risk'>>({
  valid,
  risk,
}: V): Class {
  if (risk === 'unknown') return 'unknown'
  if (!valid) return 'undeliverable'
  return risk === 'low' ? 'deliverable' : 'risky'
}

export type VerdictTemplate = {
  readonly class: Class
  readonly valid: boolean
  readonly deliverable: boolean
  readonly risk: Risk
  /** Certainty of the verdict, 0 to 100; not the quality of the address. */
  readonly confidence: number
  readonly details: Details
}

type Details = {
  readonly syntaxValid: boolean
  readonly domainExists: boolean
  readonly mxRecord: boolean
  /** Null: determined by the evidence. */
  readonly smtpValid: boolean | null
}

const details = (marks: string): Details => ({
  syntaxValid: marks[0] === 'T',
  domainExists: marks[1] === 'T',
  mxRecord: marks[2] === 'T',
  smtpValid: marks[3] === '*' ? null : marks[3] === 'T',
})

function template(
  valid: boolean,
  deliverable: boolean,
  risk: Risk,
  confidence: number,
  marks: `${'T' | 'F'}${'T' | 'F'}${'T' | 'F'}${'T' | 'F' | '*'}`,
): VerdictTemplate {
  const resultClass = toClass({ valid, risk })
  return { class: resultClass, valid, deliverable, risk, confidence, details: details(marks) }
}

/** ev has not measured the other service, so it is as certain as not. */
const EXTERNAL_CONFIDENCE = 50

export const VERDICT_BY_REASON = {
  accepted_email: template(true, true, 'low', 95, 'TTTT'),
  role_account: template(true, true, 'medium', 80, 'TTTT'),
  possible_typo: template(true, true, 'medium', 60, 'TTTT'),
  catch_all: template(true, false, 'medium', 50, 'TTTT'),
  low_deliverability: template(true, false, 'medium', 50, 'TTTT'),
  low_quality: template(true, true, 'medium', 55, 'TTTT'),
  disposable_email: template(true, false, 'high', 90, 'TTT*'),
  mailbox_full: template(true, false, 'high', 85, 'TTTF'),
  spam_trap: template(true, false, 'high', 90, 'TTT*'),
  blocklisted: template(true, false, 'high', 99, 'TTT*'),
  mailbox_disabled: template(false, false, 'high', 95, 'TTTF'),
  rejected_email: template(false, false, 'high', 98, 'TTTF'),
  invalid_email: template(false, false, 'high', 100, 'FFFF'),
  invalid_domain: template(false, false, 'high', 99, 'TFFF'),
  no_mx_record: template(false, false, 'high', 97, 'TTFF'),
  does_not_accept_mail: template(false, false, 'high', 99, 'TTFF'),
  dns_error: template(false, false, 'unknown', 0, 'TFFF'),
  no_connect: template(false, false, 'unknown', 20, 'TTTF'),
  timeout: template(false, false, 'unknown', 20, 'TTTF'),
  unavailable_smtp: template(false, false, 'unknown', 20, 'TTTF'),
  invalid_smtp: template(false, false, 'unknown', 20, 'TTTF'),
  greylisted: template(false, false, 'unknown', 20, 'TTTF'),
  probe_blocked: template(false, false, 'unknown', 10, 'TTTF'),
  smtp_skipped: template(false, false, 'unknown', 30, 'TTTF'),
  no_address: template(false, false, 'unknown', 0, 'FFFF'),
  unexpected_error: template(false, false, 'unknown', 0, 'TFF*'),
  external_deliverable: template(true, true, 'low', EXTERNAL_CONFIDENCE, 'TFFF'),
  external_risky: template(true, false, 'medium', EXTERNAL_CONFIDENCE, 'TFFF'),
  external_do_not_mail: template(true, false, 'high', EXTERNAL_CONFIDENCE, 'TFFF'),
  external_undeliverable: template(false, false, 'high', EXTERNAL_CONFIDENCE, 'TFFF'),
  external_unknown: template(false, false, 'unknown', 0, 'TFFF'),
} as const satisfies Record<string, VerdictTemplate>

/** For `possible_typo` if the domain is a catch-all, or uses a parking or trap service. */
export const LOOKALIKE_DOMAIN: VerdictTemplate = template(true, false, 'high', 85, 'TTT*')

/**
 * For `rejected_email` if no rule knows the text, but the server of the domain gave it to a random
 * recipient. It might give it to a blocked client too, which is rare.
 */
export const LEARNED_REJECTION: VerdictTemplate = template(false, false, 'high', 90, 'TTTF')
/**
 * For `rejected_email` if no rule knows the text, but the servers of other domains gave it to a random
 * recipient.
 */
export const INFERRED_REJECTION: VerdictTemplate = template(false, false, 'high', 85, 'TTTF')

export type Reason = keyof typeof VERDICT_BY_REASON

export const REASONS = Object.keys(VERDICT_BY_REASON) as Reason[]

type ReasonText = {
  /** A few words, as for a table. */
  readonly name: string
  readonly means: string
  /** The recommended action. */
  readonly todo: string
}

/** The name of each reason, its meaning and the recommended action, for people. */
export const REASON_TEXTS: Readonly<Record<Reason, ReasonText>> = {
  accepted_email: {
    name: 'Accepted',
    means: 'The mail server accepts mail for this address.',
    todo: 'Send.',
  },
  role_account: {
    name: 'Role address',
    means:
      'The address works, but belongs to a function (such as info@ or sales@), not to a person.',
    todo: 'Fine for business mail; do not add it to newsletters without consent.',
  },
  possible_typo: {
    name: 'Possible typo',
    means: 'The domain accepts mail, but looks like a misspelling of a well-known one.',
    todo: 'Ask the person to confirm the suggested address.',
  },
  catch_all: {
    name: 'Catch-all domain',
    means: 'The domain accepts mail for every name, so this mailbox cannot be confirmed.',
    todo: 'Send small batches and watch for bounces.',
  },
  low_deliverability: {
    name: 'Low deliverability',
    means:
      'The mail server accepts mail for this address, but the mailbox accepts mail from few senders or could not be confirmed.',
    todo: 'Send small batches and watch for bounces.',
  },
  low_quality: {
    name: 'Low quality',
    means: 'The address works, but looks made up.',
    todo: 'Ask for confirmation before you rely on it.',
  },
  disposable_email: {
    name: 'Disposable address',
    means: 'The address belongs to a disposable email service.',
    todo: 'Ask for a permanent address.',
  },
  mailbox_full: {
    name: 'Mailbox full',
    means: 'The mailbox exists but is full: mail bounces for now.',
    todo: 'Try again in a few days; remove it if it stays full.',
  },
  spam_trap: {
    name: 'Spam trap',
    means: 'The address is on a list of spam traps.',
    todo: 'Remove it, and find out how it got into your list.',
  },
  blocklisted: {
    name: 'On your blocklist',
    means: 'The address or its domain is on your list of blocked entries.',
    todo: 'Nothing: this is your own rule.',
  },
  mailbox_disabled: {
    name: 'Mailbox disabled',
    means: 'The mailbox is disabled.',
    todo: 'Remove it.',
  },
  rejected_email: {
    name: 'Mailbox not found',
    means: 'The mail server says that this mailbox does not exist.',
    todo: 'Remove it.',
  },
  invalid_email: {
    name: 'Invalid address',
    means: 'This is not an email address.',
    todo: 'Correct or remove it.',
  },
  invalid_domain: {
    name: 'Domain not found',
    means: 'The domain does not exist.',
    todo: 'Correct or remove it.',
  },
  no_mx_record: {
    name: 'No mail server',
    means: 'The domain exists, but has no mail server.',
    todo: 'Remove it.',
  },
  does_not_accept_mail: {
    name: 'Accepts no mail',
    means: 'The domain declares that it accepts no mail.',
    todo: 'Remove it.',
  },
  dns_error: {
    name: 'DNS error',
    means: 'The DNS lookup failed, so nothing is known about the domain.',
    todo: 'Try again later; check your resolver if this happens often.',
  },
  no_connect: {
    name: 'No connection',
    means: 'No mail server of the domain could be reached.',
    todo: 'Try again later. If this happens for every domain, run "ev doctor": outbound port 25 is probably blocked.',
  },
  timeout: {
    name: 'Timeout',
    means: 'The mail server did not answer in time.',
    todo: 'Try again later.',
  },
  unavailable_smtp: {
    name: 'Server unavailable',
    means: 'The mail server is temporarily unavailable, or asks to retry later.',
    todo: 'Try again later.',
  },
  invalid_smtp: {
    name: 'Invalid reply',
    means: 'The mail server sent an invalid reply.',
    todo: 'Try again later; nothing is known about the mailbox.',
  },
  greylisted: {
    name: 'Greylisted',
    means: 'The mail server asks unknown senders to retry later (greylisting).',
    todo: 'Try again after the time given; lists do so automatically.',
  },
  probe_blocked: {
    name: 'Probe blocked',
    means: 'The mail server blocked ev, not the address.',
    todo: 'Nothing is known about the mailbox; see the reply for why ev was blocked.',
  },
  smtp_skipped: {
    name: 'Not probed',
    means: 'The mail server was not contacted.',
    todo: 'Nothing is known about the mailbox beyond its domain.',
  },
  no_address: {
    name: 'No address',
    means: 'The row has no address: it is empty, or says so, as with "n/a".',
    todo: 'Nothing: there is nothing to verify.',
  },
  unexpected_error: {
    name: 'Internal error',
    means: 'An internal error occurred in ev.',
    todo: 'Try again, and report it if it happens again.',
  },
  external_deliverable: {
    name: 'External: deliverable',
    means:
      'The list says that another service found the address deliverable. ev has not tested it.',
    todo: 'Send small batches and watch for bounces, or verify it.',
  },
  external_risky: {
    name: 'External: risky',
    means: 'The list says that another service found the address risky. ev has not tested it.',
    todo: 'Send small batches and watch for bounces, or verify it.',
  },
  external_do_not_mail: {
    name: 'External: do not mail',
    means: 'The list says that another service advises against mail. ev has not tested it.',
    todo: 'Do not send.',
  },
  external_undeliverable: {
    name: 'External: undeliverable',
    means:
      'The list says that another service found the address undeliverable. ev has not tested it.',
    todo: 'Remove it, or verify it.',
  },
  external_unknown: {
    name: 'External: unknown',
    means: 'The list says that another service could not check the address, and neither has ev.',
    todo: 'Verify it.',
  },
}
