/** The 25 reasons of a verdict, with the opinion that goes with each. */

export type Risk = 'low' | 'medium' | 'high' | 'unknown'

export type VerdictTemplate = {
  readonly valid: boolean
  readonly deliverable: boolean
  readonly risk: Risk
  /** How sure the verdict is, 0 to 100; not how good the address is. */
  readonly confidence: number
  readonly details: Details
}

export type Details = {
  readonly syntaxValid: boolean
  readonly domainExists: boolean
  readonly mxRecord: boolean
  /** null: whatever was found. */
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
  return { valid, deliverable, risk, confidence, details: details(marks) }
}

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
  unexpected_error: template(false, false, 'unknown', 0, 'TFF*'),
} as const satisfies Record<string, VerdictTemplate>

/** Of `possible_typo` where the domain takes every name, or gives its mail to a parking or trap service. */
export const LOOKALIKE_DOMAIN: VerdictTemplate = template(true, false, 'high', 85, 'TTT*')

export type Reason = keyof typeof VERDICT_BY_REASON

export const REASONS = Object.keys(VERDICT_BY_REASON) as Reason[]

/** What each reason says to a person, and what to do about it. */
export const REASON_TEXTS: Readonly<Record<Reason, { means: string; todo: string }>> = {
  accepted_email: {
    means: 'The mail server accepts mail for this address.',
    todo: 'Send.',
  },
  role_account: {
    means:
      'The address works, but belongs to a function (such as info@ or sales@), not to a person.',
    todo: 'Fine for business mail; leave it out of newsletters that nobody asked for.',
  },
  possible_typo: {
    means: 'The domain takes mail, but looks like a misspelling of a well-known one.',
    todo: 'Ask the person whether the suggested address was meant.',
  },
  catch_all: {
    means:
      'The domain accepts mail for every name, so nobody can tell whether this mailbox exists.',
    todo: 'Send a little and watch for bounces.',
  },
  low_deliverability: {
    means:
      'The mail server accepts mail for this address, but the mailbox takes mail from few senders or could not be confirmed.',
    todo: 'Send a little and watch for bounces.',
  },
  low_quality: {
    means: 'The address works, but looks made up.',
    todo: 'Ask for a confirmation before you rely on it.',
  },
  disposable_email: {
    means: 'The address belongs to a service for throw-away mail.',
    todo: 'Ask for a lasting address.',
  },
  mailbox_full: {
    means: 'The mailbox exists and is full: mail bounces for now.',
    todo: 'Try again in some days; drop it if it stays full.',
  },
  spam_trap: {
    means: 'The address is on a list of spam traps.',
    todo: 'Remove it, and look at how it came into your list.',
  },
  blocklisted: {
    means: 'The address or its domain is on your own list of blocked ones.',
    todo: 'Nothing: you asked for this.',
  },
  mailbox_disabled: {
    means: 'The mailbox was switched off.',
    todo: 'Remove it.',
  },
  rejected_email: {
    means: 'The mail server says that this mailbox does not exist.',
    todo: 'Remove it.',
  },
  invalid_email: {
    means: 'This is not an email address.',
    todo: 'Correct it at the place named.',
  },
  invalid_domain: {
    means: 'The domain does not exist.',
    todo: 'Correct or remove it.',
  },
  no_mx_record: {
    means: 'The domain exists, but has no mail server.',
    todo: 'Remove it.',
  },
  does_not_accept_mail: {
    means: 'The domain says that it takes no mail at all.',
    todo: 'Remove it.',
  },
  dns_error: {
    means: 'The DNS gave no answer, so nothing is known about the domain.',
    todo: 'Try again later; check your resolver if it happens often.',
  },
  no_connect: {
    means: 'No mail server of the domain could be reached.',
    todo: 'Try again later; if it happens for every domain, run “ev doctor”: port 25 is probably closed here.',
  },
  timeout: {
    means: 'The mail server did not answer in time.',
    todo: 'Try again later.',
  },
  unavailable_smtp: {
    means: 'The mail server has trouble of its own, or asks for patience.',
    todo: 'Try again later.',
  },
  invalid_smtp: {
    means: 'What the mail server said was not understandable.',
    todo: 'Try again later; nothing is known about the mailbox.',
  },
  greylisted: {
    means: 'The mail server asks strangers to come back later (greylisting).',
    todo: 'Ask again after the time named; lists do so by themselves.',
  },
  probe_blocked: {
    means: 'The mail server refused us, not the address.',
    todo: 'Nothing is known about the mailbox; look at the reply for what it holds against us.',
  },
  smtp_skipped: {
    means: 'The mail server was not asked.',
    todo: 'Nothing is known about the mailbox beyond its domain.',
  },
  unexpected_error: {
    means: 'Something went wrong inside ev.',
    todo: 'Try again; please report it if it happens again.',
  },
}
