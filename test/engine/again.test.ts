import { describe, expect, test } from 'vitest'
import { parseAddress } from '../../src/address/address.ts'
import { HOUR, MINUTE } from '../../src/base/clock.ts'
import { askAgainAfter, retryAfterSeconds } from '../../src/engine/again.ts'
import { evidenceOf, resultOf } from '../../src/engine/prepare.ts'
import type { Answer } from '../../src/smtp/answer.ts'
import { fakeClock } from '../fake/clock.ts'

const REPLY = { code: 450, enhanced: null, text: 'later' }
const deferred = (why: 'greylist' | 'rate' | 'busy', retryAfterMs: number | null): Answer => ({
  ...{ kind: 'deferred', why, retryAfterMs, stage: 'rcpt', reply: REPLY },
})
const result = (answer: Answer | null) => {
  const address = parseAddress('ann@a.test')
  return resultOf(fakeClock(), 'ann@a.test', 0, evidenceOf({ address, answer }))
}
const FIRST = { count: 1, waitedMs: 0 }

describe('an item of a list is asked again', () => {
  test.each<[string, Answer, boolean, { count: number; waitedMs: number }, number | null]>([
    ['after five minutes', deferred('greylist', null), true, FIRST, 5 * MINUTE],
    ['after what the server names', deferred('greylist', 90_000), true, FIRST, 90_000],
    ['after trouble of theirs', deferred('busy', null), true, FIRST, 5 * MINUTE],
    ['after an hour at most', deferred('greylist', 24 * HOUR), true, FIRST, HOUR],
    ['twice', deferred('greylist', null), true, { count: 2, waitedMs: HOUR }, 5 * MINUTE],
    ['not a third time', deferred('greylist', null), true, { count: 3, waitedMs: HOUR }, null],
    ['not after four hours', deferred('busy', null), true, { count: 1, waitedMs: 4 * HOUR }, null],
    [
      'after a pause, which is no try',
      deferred('rate', 60_000),
      false,
      { count: 3, waitedMs: 0 },
      60_000,
    ],
    [
      'not after pauses of four hours',
      deferred('rate', 60_000),
      false,
      { count: 0, waitedMs: 4 * HOUR },
      null,
    ],
  ])('%s', (_, answer, asked, tries, waitMs) => {
    expect(askAgainAfter(result(answer), asked, tries, null)).toBe(waitMs)
  })

  test('after the time of the settings, whatever the server names', () => {
    expect(askAgainAfter(result(deferred('greylist', 90_000)), true, FIRST, 4_000)).toBe(4_000)
    expect(askAgainAfter(result(deferred('greylist', null)), true, FIRST, 0)).toBe(0)
  })

  test.each<[string, Answer | null]>([
    ['nobody was asked', null],
    ['accepted', { kind: 'accepted', why: 'recipient', stage: 'rcpt', reply: REPLY }],
    ['rejected', { kind: 'rejected', why: 'no-mailbox', stage: 'rcpt', reply: REPLY }],
    ['refused us', { kind: 'refused-us', why: 'blocklist', stage: 'rcpt', reply: REPLY }],
    ['silent', { kind: 'silent', why: 'timeout', stage: 'rcpt', detail: '' }],
  ])('never when it was %s', (_, answer) => {
    expect(askAgainAfter(result(answer), true, FIRST, null)).toBeNull()
    expect(retryAfterSeconds(result(answer))).toBeNull()
  })
})

test.each<[Answer, number | null]>([
  [deferred('greylist', null), 300],
  [deferred('greylist', 1), 1],
  [deferred('busy', 90_500), 91],
  [deferred('busy', null), null],
])('a single verification is told to come back: %j after %s s', (answer, seconds) => {
  expect(retryAfterSeconds(result(answer))).toBe(seconds)
})
