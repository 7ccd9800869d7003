import type { ActionCase } from '../engine/verdict/action.ts'

/** What is assumed about mail to addresses of one kind before any of it is reported. */
type BounceAssumption = {
  /** Share of the mail that bounces, 0 to 1. */
  readonly rate: number
  /** The rate counts as this many reports: own reports outweigh it when there are more of them. */
  readonly weight: number
  /** Where the rate comes from. */
  readonly source: string
}

/** A statement about the address that leaves hardly any doubt. */
const CERTAIN = 100
/** A rate that several sources agree on, or that ev can refute by a second look. */
const SOLID = 50
/** A rate on which sources differ, or none exists. */
const LOOSE = 4

const assume = (rate: number, weight: number, source: string): BounceAssumption => ({
  rate,
  weight,
  source,
})

const GUARANTEES =
  'DeBounce guarantees at most 2.5 % bounces of addresses that it calls deliverable, TrueMail at most 3 %'
const CATCH_ALLS =
  'NeverBounce sees half of the invalid share of the list, GetProspect about 50 %: sources differ widely'
const OWN_RULE = 'the verdict itself: such mail is refused'
const NOT_TESTED = 'an assumption: another service decided, and ev has not measured it'
const NO_SOURCE = 'an assumption without a source'

/**
 * The assumed bounce rates of mail, by the case of the verdict. They are assumptions, not
 * measurements of ev: the sources are statements of other verification services about their own
 * customers (read in November 2026). `docs/projection.md` shows the table.
 */
export const BOUNCE_RATES: Readonly<Record<ActionCase, BounceAssumption>> = {
  accepted_email: assume(0.02, SOLID, GUARANTEES),
  complained: assume(0.02, SOLID, 'a complaint proves that the mailbox exists'),
  role_account: assume(0.03, SOLID, `as accepted_email; role addresses change more often`),
  low_quality: assume(0.05, LOOSE, NO_SOURCE),
  possible_typo: assume(0.1, LOOSE, NO_SOURCE),
  'possible_typo/high': assume(0.3, LOOSE, NO_SOURCE),
  catch_all: assume(0.2, LOOSE, CATCH_ALLS),
  'catch_all/low': assume(0.05, SOLID, 'own reports about the domain: at most 10 % bounced'),
  'catch_all/high': assume(0.5, LOOSE, 'own reports about the domain: at least 30 % bounced'),
  low_deliverability: assume(0.2, LOOSE, CATCH_ALLS),
  disposable_email: assume(0.3, LOOSE, NO_SOURCE),
  mailbox_full: assume(0.8, SOLID, 'the reply of the server: mail bounces until there is space'),
  spam_trap: assume(0.05, LOOSE, 'traps accept mail; those that are retired bounce it'),
  blocklisted: assume(0.1, LOOSE, 'not verified: the own rule decides'),

  mailbox_disabled: assume(0.97, SOLID, OWN_RULE),
  rejected_email: assume(0.97, SOLID, OWN_RULE),
  invalid_email: assume(1, CERTAIN, 'no mail can be addressed to it'),
  invalid_domain: assume(0.99, CERTAIN, OWN_RULE),
  no_mx_record: assume(0.98, CERTAIN, OWN_RULE),
  does_not_accept_mail: assume(0.99, CERTAIN, OWN_RULE),

  dns_error: assume(0.2, LOOSE, NO_SOURCE),
  no_connect: assume(0.3, LOOSE, NO_SOURCE),
  timeout: assume(0.2, LOOSE, NO_SOURCE),
  unavailable_smtp: assume(0.15, LOOSE, NO_SOURCE),
  invalid_smtp: assume(0.15, LOOSE, NO_SOURCE),
  greylisted: assume(0.1, LOOSE, NO_SOURCE),
  probe_blocked: assume(0.15, LOOSE, NO_SOURCE),
  smtp_skipped: assume(0.15, LOOSE, NO_SOURCE),
  unexpected_error: assume(0.15, LOOSE, NO_SOURCE),
  external_deliverable: assume(0.05, LOOSE, NOT_TESTED),
  external_risky: assume(0.2, LOOSE, NOT_TESTED),
  external_do_not_mail: assume(0.3, LOOSE, NOT_TESTED),
  external_undeliverable: assume(0.9, LOOSE, NOT_TESTED),
  external_unknown: assume(0.2, LOOSE, NOT_TESTED),
  // Such a row is never mailed, and no projection counts it.
  no_address: assume(0, CERTAIN, 'nothing is sent'),
}
