import type { Reason } from '../../engine/verdict/reason.ts'

/**
 * How likely mail is welcome, 0 to 100, by the reason of a result. Fixed by the interface: rejected 0, and the rows
 * of the sandbox; the others stand between them.
 */
export const SCORES: Readonly<Record<Reason, number>> = {
  accepted_email: 95,
  role_account: 60,
  possible_typo: 55,
  low_quality: 50,
  low_deliverability: 50,
  catch_all: 50,
  disposable_email: 30,
  // It exists, but mail comes back until somebody tidies up.
  mailbox_full: 20,
  // To write there does harm.
  spam_trap: 5,
  blocklisted: 5,

  // Nobody knows: less than what was accepted, more than what is known to do harm.
  greylisted: 40,
  smtp_skipped: 40,
  no_connect: 40,
  timeout: 40,
  unavailable_smtp: 40,
  invalid_smtp: 40,
  probe_blocked: 40,
  dns_error: 40,
  unexpected_error: 40,

  mailbox_disabled: 0,
  rejected_email: 0,
  invalid_email: 0,
  invalid_domain: 0,
  no_mx_record: 0,
  does_not_accept_mail: 0,
}
