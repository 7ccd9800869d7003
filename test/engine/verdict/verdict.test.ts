import { describe, expect, test } from 'vitest'
import { type Reason, VERDICT_BY_REASON } from '../../../src/engine/verdict/reason.ts'
import { toClass } from '../../../src/engine/verdict/verdict.ts'

describe('classes', () => {
  test.each<[string, readonly Reason[]]>([
    ['deliverable', ['accepted_email', 'external_deliverable']],
    [
      'risky',
      [
        ...(['role_account', 'possible_typo', 'catch_all', 'low_deliverability'] as const),
        ...(['low_quality', 'disposable_email', 'mailbox_full', 'spam_trap'] as const),
        ...(['blocklisted', 'external_risky', 'external_do_not_mail'] as const),
      ],
    ],
    [
      'undeliverable',
      [
        ...(['mailbox_disabled', 'rejected_email', 'invalid_email', 'invalid_domain'] as const),
        ...(['no_mx_record', 'does_not_accept_mail', 'external_undeliverable'] as const),
      ],
    ],
    [
      'unknown',
      [
        ...(['dns_error', 'no_connect', 'timeout', 'unavailable_smtp', 'invalid_smtp'] as const),
        ...([
          'greylisted',
          'probe_blocked',
          'smtp_skipped',
          'unexpected_error',
          'no_address',
          'external_unknown',
        ] as const),
      ],
    ],
  ])('%s contains the expected reasons', (klass, reasons) => {
    const found = Object.entries(VERDICT_BY_REASON)
      .filter(([reason, { details, ...opinion }]) => {
        const smtpValid = details.smtpValid ?? false
        return (
          toClass({ ...opinion, reason: reason as Reason, details: { ...details, smtpValid } }) ===
          klass
        )
      })
      .map(([reason]) => reason)
    expect(found.toSorted()).toEqual(reasons.toSorted())
  })
})
