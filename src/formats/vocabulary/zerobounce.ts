import type { Reason } from '../../engine/verdict/reason.ts'
import type { Facts } from './facts.ts'
import { type Column, empty } from './table.ts'

// The columns of a ZeroBounce results file, and its words: docs.zerobounce.net, "Status codes" and
// "Get file".

type Words = readonly [status: string, subStatus: string | null]

/**
 * The words by reason. A deliverable address is `valid`, an undeliverable one `invalid` and an
 * unknown one `unknown`. A risky one is `catch-all`, `do_not_mail` or `spamtrap`, never `valid` or
 * `invalid`: ZeroBounce has no other words for "accepted, but".
 */
const WORDS: Readonly<Record<Reason, Words>> = {
  accepted_email: ['valid', null],
  role_account: ['do_not_mail', 'role_based'],
  possible_typo: ['do_not_mail', 'possible_typo'],
  catch_all: ['catch-all', null],
  low_deliverability: ['catch-all', null],
  low_quality: ['do_not_mail', null],
  disposable_email: ['do_not_mail', 'disposable'],
  mailbox_full: ['do_not_mail', 'mailbox_quota_exceeded'],
  spam_trap: ['spamtrap', null],
  blocklisted: ['do_not_mail', 'global_suppression'],
  mailbox_disabled: ['invalid', 'mailbox_not_found'],
  rejected_email: ['invalid', 'mailbox_not_found'],
  invalid_email: ['invalid', 'failed_syntax_check'],
  invalid_domain: ['invalid', 'no_dns_entries'],
  no_mx_record: ['invalid', 'no_dns_entries'],
  does_not_accept_mail: ['invalid', 'does_not_accept_mail'],
  dns_error: ['unknown', 'exception_occurred'],
  no_connect: ['unknown', 'failed_smtp_connection'],
  timeout: ['unknown', 'timeout_exceeded'],
  unavailable_smtp: ['unknown', 'mail_server_temporary_error'],
  invalid_smtp: ['unknown', 'exception_occurred'],
  greylisted: ['unknown', 'greylisted'],
  probe_blocked: ['unknown', 'antispam_system'],
  smtp_skipped: ['unknown', null],
  no_address: ['unknown', null],
  unexpected_error: ['unknown', 'exception_occurred'],
  external_deliverable: ['valid', null],
  external_risky: ['catch-all', null],
  external_do_not_mail: ['do_not_mail', null],
  external_undeliverable: ['invalid', null],
  external_unknown: ['unknown', null],
}

/** Mail arrived at this address of a catch-all domain. */
const CONFIRMED_CATCH_ALL: Words = ['valid', 'accept_all']

const toWords = ({ reason, class: klass }: Facts): Words =>
  reason === 'catch_all' && klass === 'deliverable' ? CONFIRMED_CATCH_ALL : WORDS[reason]

export const ZEROBOUNCE: readonly Column[] = [
  ['Email Address', ({ email }) => email],
  ['ZB Status', facts => toWords(facts)[0]],
  ['ZB Sub Status', facts => toWords(facts)[1]],
  ['ZB Account', ({ local }) => local],
  ['ZB Domain', ({ domain }) => domain],
  empty('ZB First Name'),
  empty('ZB Last Name'),
  empty('ZB Gender'),
  ['ZB Free Email', ({ isFree }) => (isFree === null ? null : isFree ? 'True' : 'False')],
  ['ZB MX Found', ({ details }) => (details === null ? null : String(details.mxRecord))],
  ['ZB MX Record', ({ mxHost }) => mxHost],
  empty('ZB SMTP Provider'),
  ['ZB Did You Mean', ({ suggestion }) => suggestion],
]
