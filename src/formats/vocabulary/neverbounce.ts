import type { Reason } from '../../engine/verdict/reason.ts'
import type { Class } from '../../engine/verdict/verdict.ts'
import type { Facts } from './facts.ts'
import { type Column, empty } from './table.ts'

// The columns that NeverBounce appends to a list, and its words: developers.neverbounce.com, "Jobs:
// download" and "Result codes".

/** The numbers are `email_status_int`. */
const STATUSES = { valid: 0, invalid: 1, disposable: 2, catchall: 3, unknown: 4 } as const

type Status = keyof typeof STATUSES

/** A risky address is `catchall`, which NeverBounce also calls unverifiable. */
const STATUS_BY_CLASS: Readonly<Record<Class, Status>> = {
  deliverable: 'valid',
  risky: 'catchall',
  undeliverable: 'invalid',
  unknown: 'unknown',
}

/**
 * Risky addresses that must not get mail: NeverBounce has `invalid` as the only word for addresses
 * of your own lists. A full mailbox may be empty next week.
 */
const STATUS_BY_REASON: Partial<Readonly<Record<Reason, Status>>> = {
  disposable_email: 'disposable',
  spam_trap: 'invalid',
  blocklisted: 'invalid',
  external_do_not_mail: 'invalid',
  mailbox_full: 'unknown',
}

const toStatus = ({ reason, class: klass }: Facts): Status =>
  STATUS_BY_REASON[reason] ?? STATUS_BY_CLASS[klass]

/** NeverBounce writes 1 and 0, unless another form is asked for. */
const toFlag = (flag: boolean | null | undefined) => (flag == null ? null : Number(flag))

export const NEVERBOUNCE: readonly Column[] = [
  ['email', ({ email }) => email],
  ['bad_syntax', ({ reason }) => toFlag(reason === 'invalid_email')],
  ['free_email_host', ({ isFree }) => toFlag(isFree)],
  ['role_account', ({ isRole }) => toFlag(isRole)],
  ['addr', ({ local }) => local],
  empty('alias'),
  ['host', ({ domain }) => domain],
  empty('subdomain'),
  empty('domain'),
  empty('tld'),
  ['fqdn', ({ domain }) => domain],
  empty('network'),
  ['has_dns_info', ({ details }) => toFlag(details?.domainExists)],
  ['has_mail_server', ({ details }) => toFlag(details?.mxRecord)],
  empty('mail_server_reachable'),
  ['email_status_int', facts => STATUSES[toStatus(facts)]],
  ['email_status', facts => toStatus(facts)],
]
