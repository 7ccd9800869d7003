import { describe, expect, test } from 'vitest'
import type { Reason } from '../../src/engine/verdict/reason.ts'
import type { Evidence } from '../../src/engine/verdict/verdict.ts'
import {
  CONTRADICTED_MIN,
  CONTRADICTED_SHARE_MIN,
  decidingReply,
  findContradictedReplies,
} from '../../src/feedback/replies.ts'
import { resultOf } from '../support/result.ts'

type Answer = NonNullable<Evidence['answer']>

const accepted = (text: string, code = 250, enhanced: string | null = null): Answer => ({
  kind: 'accepted',
  why: 'recipient',
  stage: 'rcpt',
  reply: { code, enhanced, text },
})
const rejected = (text: string, enhanced: string | null = '5.1.1'): Answer => ({
  kind: 'rejected',
  why: 'no-mailbox',
  stage: 'rcpt',
  reply: { code: 550, enhanced, text },
})

function replyOf(reason: Reason, answer: Answer | null): string | null {
  const result = resultOf(reason)
  return decidingReply({ ...result, evidence: { ...result.evidence, answer } })
}

describe('the reply that decided a result', () => {
  test.each<[Reason, Answer, string]>([
    ['accepted_email', accepted('OK', 250, '2.1.5'), 'accepted/recipient 250 2.1.5 ok'],
    ['role_account', accepted('Accepted'), 'accepted/recipient 250 accepted'],
    [
      'rejected_email',
      rejected('5.1.1 <ann@good.test>: Recipient address rejected: User unknown'),
      'rejected/no-mailbox 550 5.1.1 <>: recipient address rejected: user unknown',
    ],
    // Masks the text that differs between recipients and sessions.
    [
      'rejected_email',
      rejected('No such user ann - gsmtp d9443c01a7336-23 17 at mx1.google.com', null),
      'rejected/no-mailbox 550 no such user <> - gsmtp # at #',
    ],
  ])('%s: %j', (reason, answer, expected) => {
    expect(replyOf(reason, answer)).toBe(expected)
  })

  test('does not contain the address, and is short', () => {
    const text = `ann@good.test ann.lee@good.test "ann" ${'a long policy '.repeat(50)}`
    const reply = replyOf('rejected_email', rejected(text)) ?? ''
    expect(reply).not.toMatch(/ann|good/)
    expect(reply.length).toBeLessThan(150)
  })

  test.each<[string, Reason, Answer | null]>([
    ['there was none', 'accepted_email', null],
    ['the domain is a catch-all', 'catch_all', accepted('OK')],
    ['the mailbox is full', 'mailbox_full', { ...rejected('full'), why: 'full' } as Answer],
    ['another fact decided', 'disposable_email', accepted('OK')],
    ['the server was not reached', 'timeout', null],
  ])('is null if %s', (_, reason, answer) => {
    expect(replyOf(reason, answer)).toBeNull()
  })
})

describe('a contradicted reply', () => {
  const sum = (confirmed: number, contradicted: number, reply = 'accepted/recipient 250 ok') => ({
    operator: 'Google',
    reply,
    confirmed,
    contradicted,
    accounts: 1,
  })

  test('is reported with its meaning and the lower end of the interval', () => {
    const reply = 'rejected/no-mailbox 550 5.1.1 user unknown'
    expect(findContradictedReplies([sum(10, 10, reply)])).toEqual([
      {
        operator: 'Google',
        said: 'rejected',
        meaning: 'rejected/no-mailbox',
        reply: '550 5.1.1 user unknown',
        count: 20,
        contradicted: 10,
        accounts: 1,
        shareMin: expect.closeTo(0.299, 3),
      },
    ])
  })

  test.each<[number, number, boolean]>([
    [0, CONTRADICTED_MIN - 1, false],
    [0, CONTRADICTED_MIN, true],
    // Five of 20 may be chance, one of ten of many is usual.
    [15, 5, true],
    [20, 5, false],
    [900, 100, false],
    [800, 200, true],
  ])('with %i confirmations and %i contradictions: %s', (confirmed, contradicted, expected) => {
    const found = findContradictedReplies([sum(confirmed, contradicted)])
    expect(found.length > 0).toBe(expected)
    for (const { shareMin } of found) expect(shareMin).toBeGreaterThan(CONTRADICTED_SHARE_MIN)
  })

  test('comes first if it is contradicted most', () => {
    const found = findContradictedReplies([sum(0, 6), sum(0, 60, 'rejected/no-mailbox 550 x')])
    expect(found.map(({ said }) => said)).toEqual(['rejected', 'accepted'])
  })
})
