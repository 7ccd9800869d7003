import type { Reason } from '../../engine/verdict/reason.ts'
import { type Column, empty } from './table.ts'

// The fields of a result of Kickbox, and its words: docs.kickbox.com, "Single Verification API" and
// "Terminology".

/**
 * The reasons of Kickbox; null if it has none. `invalid_smtp` means undeliverable there, so a reply
 * that ev cannot read is `unavailable_smtp`.
 */
const REASONS: Readonly<Record<Reason, string | null>> = {
  accepted_email: 'accepted_email',
  role_account: 'low_quality',
  possible_typo: 'low_quality',
  catch_all: 'low_deliverability',
  low_deliverability: 'low_deliverability',
  low_quality: 'low_quality',
  disposable_email: 'low_quality',
  mailbox_full: 'low_deliverability',
  spam_trap: 'low_quality',
  blocklisted: 'low_quality',
  mailbox_disabled: 'rejected_email',
  rejected_email: 'rejected_email',
  invalid_email: 'invalid_email',
  invalid_domain: 'invalid_domain',
  no_mx_record: 'invalid_domain',
  does_not_accept_mail: 'invalid_domain',
  dns_error: 'unexpected_error',
  no_connect: 'no_connect',
  timeout: 'timeout',
  unavailable_smtp: 'unavailable_smtp',
  invalid_smtp: 'unavailable_smtp',
  greylisted: 'unavailable_smtp',
  probe_blocked: 'unavailable_smtp',
  smtp_skipped: null,
  no_address: null,
  unexpected_error: 'unexpected_error',
  // The server was not asked, so none of the reasons of Kickbox applies.
  external_deliverable: null,
  external_risky: null,
  external_do_not_mail: 'low_quality',
  external_undeliverable: null,
  external_unknown: null,
}

export const KICKBOX: readonly Column[] = [
  ['email', ({ email }) => email],
  ['result', ({ class: klass }) => klass],
  [
    'reason',
    ({ reason, class: klass }) =>
      reason === 'catch_all' && klass === 'deliverable' ? 'accepted_email' : REASONS[reason],
  ],
  ['role', ({ isRole }) => isRole],
  ['free', ({ isFree }) => isFree],
  ['disposable', ({ isDisposable }) => isDisposable],
  ['accept_all', ({ isCatchAll }) => isCatchAll],
  ['did_you_mean', ({ suggestion }) => suggestion],
  // The confidence of ev rates the result, not the address.
  empty('sendex'),
  ['user', ({ local }) => local],
  ['domain', ({ domain }) => domain],
  ['success', ({ reason }) => reason !== 'unexpected_error'],
  empty('message'),
]
