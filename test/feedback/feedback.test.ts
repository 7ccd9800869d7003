import { describe, expect, test } from 'vitest'
import { type FeedbackInput, parseFeedback } from '../../src/feedback/feedback.ts'
import { DAY } from '../../src/platform/clock.ts'

const NOW = Date.parse('2026-11-23T12:00:00Z')

const piece = (o: Partial<FeedbackInput> = {}): FeedbackInput => ({
  address: 'ann@Example.com',
  kind: 'bounced',
  occurredAt: NOW - DAY,
  ...o,
})

function parsed(o: Partial<FeedbackInput> = {}) {
  const feedback = parseFeedback(piece(o), NOW)
  if (typeof feedback === 'string') throw new Error(feedback)
  return feedback
}

describe('the outcome of a bounce', () => {
  test.each<[string, Partial<FeedbackInput>, string | null]>([
    ['an unknown user', { code: 550, enhancedCode: '5.1.1', text: 'User unknown' }, 'dead'],
    ['an enhanced code alone', { enhancedCode: '5.1.1' }, 'dead'],
    ['a disabled mailbox', { code: 550, text: 'Account disabled' }, 'dead'],
    ['a full mailbox', { code: 552, enhancedCode: '5.2.2', text: 'Mailbox full' }, null],
    ['a block', { code: 554, enhancedCode: '5.7.1', text: 'blocked using zen.spamhaus.org' }, null],
    ['a temporary failure', { code: 450, enhancedCode: '4.2.1', text: 'try again later' }, null],
    ['a domain that does not exist', { enhancedCode: '5.1.2', text: 'Host not found' }, 'dead'],
    ['a refusal to relay', { code: 554, enhancedCode: '5.7.1', text: 'Relay access denied' }, null],
    ['one in French', { code: 550, text: 'Relais interdit' }, null],
    ['one of Exchange', { code: 550, enhancedCode: '5.7.1', text: 'Unable to relay' }, null],
    [
      'a loop that Postfix found',
      { enhancedCode: '5.4.6', text: 'mail for a.test loops back to myself' },
      null,
    ],
    [
      'a loop that Exim found',
      { enhancedCode: '5.0.0', text: 'lowest numbered MX record points to local host' },
      null,
    ],
    ['no code', {}, null],
    ['no code, permanent by its provider', { isPermanent: true }, 'dead'],
    ['no code, temporary by its provider', { isPermanent: false }, null],
    ['a status without a cause', { enhancedCode: '5.0.0' }, null],
    ['a code without words, which may be about the message', { code: 550 }, null],
    [
      'a status without a cause, permanent by its provider',
      { enhancedCode: '5.0.0', isPermanent: true },
      'dead',
    ],
    ['words, but no code', { enhancedCode: '5.0.0', text: 'User unknown' }, 'dead'],
    [
      'an unknown user that its provider calls temporary',
      { code: 550, enhancedCode: '5.1.1', text: 'User unknown', isPermanent: false },
      null,
    ],
    [
      'a block that its provider calls permanent',
      { code: 550, enhancedCode: '5.7.1', text: 'blocked by policy', isPermanent: true },
      null,
    ],
  ])('with %s', (_, o, outcome) => {
    expect(parsed(o).outcome).toBe(outcome)
  })
})

test('a delivery and a complaint show that the mailbox exists', () => {
  expect(parsed({ kind: 'delivered' }).outcome).toBe('alive')
  expect(parsed({ kind: 'complained' }).outcome).toBe('alive')
})

test.each<[string, Partial<FeedbackInput>]>([
  ['The address is invalid', { address: 'no address' }],
  ['The time is in the future', { occurredAt: NOW + 2 * DAY }],
  ['The time is more than two years ago', { occurredAt: NOW - 800 * DAY }],
])('is rejected: %s', (error, o) => {
  expect(parseFeedback(piece(o), NOW)).toContain(error)
})

test('a clock that is ahead by less than a day counts as now', () => {
  expect(parsed({ occurredAt: NOW + DAY / 2 }).occurredAt).toBe(NOW)
  expect(parsed({ occurredAt: null }).occurredAt).toBe(NOW)
})

test('text is cleaned and bounded, and codes that are none are left out', () => {
  const { text, code, enhancedCode } = parsed({
    text: `a\u0000b\u001b[31m ${'x'.repeat(2_000)}`,
    code: 99,
    enhancedCode: '9.9.9',
  })
  expect(text).toHaveLength(500)
  expect(text).not.toMatch(/\p{Cc}/u)
  expect({ code, enhancedCode }).toEqual({ code: null, enhancedCode: null })
})

describe('two pieces are the same', () => {
  const key = (o: Partial<FeedbackInput>) => parsed(o).dedupeKey
  test('if all their facts are', () => {
    expect(key({})).toBe(key({}))
    expect(key({})).not.toBe(key({ occurredAt: NOW }))
    expect(key({})).not.toBe(key({ address: 'bob@example.com' }))
    expect(key({})).not.toBe(key({ text: 'other' }))
  })

  test('if their ID is, whatever their time', () => {
    expect(key({ id: 'e1' })).toBe(key({ id: 'e1', occurredAt: NOW, text: 'other' }))
    expect(key({ id: 'e1' })).not.toBe(key({ id: 'e2' }))
    expect(key({ id: 'e1' })).not.toBe(key({ id: 'e1', kind: 'delivered' }))
  })
})
