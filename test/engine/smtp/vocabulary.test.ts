import { describe, expect, test } from 'vitest'
import { classifyReply } from '../../../src/engine/smtp/classify-reply.ts'
import { type VocabularyCase, vocabulary } from './vocabulary.ts'

const meaningOf = ({ stage, reply }: VocabularyCase) => {
  const { kind, why } = classifyReply(stage, reply)
  return `${kind}/${why}`
}
const accepted = ({ means, also }: VocabularyCase) => [means, ...also]
/** A full mailbox exists. */
const isDead = (meaning: string) => /^rejected\/(?!full)/.test(meaning)
const percent = (part: number, whole: number) => (100 * part) / whole

const SETS: readonly [name: string, cases: readonly VocabularyCase[]][] = [
  ['the cases that the rules were written with', vocabulary.filter(one => !one.isHeldOut)],
  ['the cases that were held out', vocabulary.filter(one => one.isHeldOut)],
]

describe.each(SETS)('the vocabulary of mail servers and operators: %s', (_, cases) => {
  test('no block is classified as a dead mailbox', () => {
    const falseDead = cases.filter(one => !accepted(one).some(isDead) && isDead(meaningOf(one)))
    expect(falseDead.map(({ reply }) => reply.text)).toEqual([])
  })

  test('no refusal is classified as accepted', () => {
    const falseAccept = cases.filter(
      one => meaningOf(one).startsWith('accepted/') && !accepted(one).includes(meaningOf(one)),
    )
    expect(falseAccept.map(({ reply }) => reply.text)).toEqual([])
  })

  test('at least 96 % are classified correctly, and at most 2 % of the dead mailboxes are missed', () => {
    const right = cases.filter(one => accepted(one).includes(meaningOf(one)))
    expect(percent(right.length, cases.length)).toBeGreaterThanOrEqual(96)
    const dead = cases.filter(({ means }) => isDead(means))
    const missed = dead.filter(
      one => !isDead(meaningOf(one)) && !accepted(one).includes(meaningOf(one)),
    )
    expect(percent(missed.length, dead.length)).toBeLessThanOrEqual(2)
  })
})

test('the vocabulary has at least 600 cases with sources, a third of them held out', () => {
  expect(vocabulary.length).toBeGreaterThanOrEqual(600)
  const heldOut = vocabulary.filter(({ isHeldOut }) => isHeldOut)
  expect(percent(heldOut.length, vocabulary.length)).toBeGreaterThan(30)
  expect(vocabulary.filter(({ source }) => source.length < 3)).toEqual([])
})

test('the vocabulary has no duplicates', () => {
  const keys = vocabulary.map(({ stage, reply }) => JSON.stringify([stage, reply]))
  expect(keys.filter((key, index) => keys.indexOf(key) !== index)).toEqual([])
})

/** Predicates of a missing, closed or full mailbox. */
const PREDICATES = [
  ...['unknown', 'not found', 'could not be found', 'does not exist', "doesn't exist", 'not exist'],
  ...['is invalid', 'is not valid', 'is wrong', 'is not known', 'is not recognized', 'is missing'],
  ...['is unavailable', 'is undeliverable', 'cannot be verified', 'no longer exists', 'not listed'],
  ...['is disabled', 'has been suspended', 'has expired', 'is closed', 'is inactive', 'is locked'],
  ...['has been deleted', 'is no longer valid', 'is over quota', 'is full', 'has moved'],
]
const ADJECTIVES = ['unknown', 'no such', 'invalid', 'bad', 'nonexistent', 'disabled', 'expired']

describe('the subject decides, not the predicate', () => {
  const answer = (text: string, enhanced: string | null) =>
    classifyReply('rcpt', { code: 550, enhanced, text }, { recipient: 'ann@mx.example' })

  test.each([
    ...['sender', 'the sender address', 'sender mailbox', 'sending account', 'sending domain'],
    ...['originator', 'MAIL FROM address', 'return path', 'envelope sender', 'bounce address'],
    ...['your address', 'your account', 'your domain', 'your mailbox', 'your host', 'your IP'],
    ...['client address', 'client host', 'source address', 'connecting host', 'remote host'],
    ...['IP address', 'IP 192.0.2.1', 'host name', 'HELO domain', 'client [192.0.2.1]'],
    ...['PTR record', 'SPF record', 'DKIM key', 'certificate', 'TLS version', 'From: header'],
    ...['message header', 'attachment', 'URL', 'file', 'user agent', 'SMTP user name or password'],
  ])('%s: never a dead mailbox', subject => {
    const bare = subject.replace(/^(?:the|your) /, '')
    const isOurs = !subject.startsWith('your ')
    const texts = [
      ...PREDICATES.map(predicate => `${subject} ${predicate}`),
      ...(isOurs ? ADJECTIVES.map(adjective => `${adjective} ${bare}`) : []),
    ]
    const dead = texts.flatMap(text =>
      [null, '5.0.0', '5.7.1']
        .filter(code => answer(text, code).kind === 'rejected')
        .map(() => text),
    )
    expect(dead).toEqual([])
  })

  test.each([
    ...['recipient', 'the user', 'mailbox', 'account', 'the recipient address', 'email address'],
    ...['user <ann@mx.example>', 'recipient <ann@mx.example>', 'mailbox ann', 'ann@mx.example'],
  ])('%s: always rejected', subject => {
    const alive = PREDICATES.filter(
      predicate =>
        !/is full|has moved|verified/.test(predicate) &&
        answer(`${subject} ${predicate}`, null).kind !== 'rejected',
    )
    expect(alive).toEqual([])
  })
})
