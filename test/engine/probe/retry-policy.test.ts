import { describe, expect, test } from 'vitest'
import { parseAddress } from '../../../src/engine/address/address.ts'
import {
  alternativeEgress,
  isDecided,
  nextRetry,
  retryAfter,
  retryAfterSeconds,
} from '../../../src/engine/probe/retry-policy.ts'
import type { RecipientOutcome } from '../../../src/engine/smtp/classify-reply.ts'
import { toEvidence, toResult } from '../../../src/engine/verdict/judge.ts'
import { HOUR, MINUTE, SECOND } from '../../../src/platform/clock.ts'
import { fakeClock } from '../../support/clock.ts'

const REPLY = { code: 450, enhanced: null, text: 'later' }
const deferred = (
  why: 'greylist' | 'rate' | 'busy',
  retryAfterMs: number | null,
): RecipientOutcome => ({
  kind: 'deferred',
  why,
  retryAfterMs,
  stage: 'rcpt',
  reply: REPLY,
})
const result = (answer: RecipientOutcome | null, catchAll: boolean | null = null) => {
  const address = parseAddress('ann@a.test')
  return toResult(fakeClock(), 'ann@a.test', 0, toEvidence({ address, answer, catchAll }))
}
const ACCEPTED: RecipientOutcome = {
  kind: 'accepted',
  why: 'recipient',
  stage: 'rcpt',
  reply: REPLY,
}
const OWN_LIMIT: RecipientOutcome = {
  kind: 'no-response',
  why: 'own-limit',
  stage: 'connect',
  detail: 'not probed in time',
}
const FIRST = { count: 1, waitedMs: 0 }
const heard = (answer: RecipientOutcome | null, asked = true) => ({
  result: result(answer),
  asked,
  egress: 'a',
})

describe('an item of a list is retried', () => {
  test.each<
    [string, RecipientOutcome, boolean, { count: number; waitedMs: number }, number | null]
  >([
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
    ['after a limit of our own', OWN_LIMIT, false, { count: 3, waitedMs: 0 }, 10 * SECOND],
    [
      'not after pauses of four hours',
      deferred('rate', 60_000),
      false,
      { count: 0, waitedMs: 4 * HOUR },
      null,
    ],
  ])('%s', (_, answer, asked, tries, waitMs) => {
    expect(retryAfter({ result: result(answer), asked }, tries, null)).toBe(waitMs)
  })

  test('after the configured delay, whatever the server requests', () => {
    expect(retryAfter(heard(deferred('greylist', 90_000)), FIRST, 4_000)).toBe(4_000)
    expect(retryAfter(heard(deferred('greylist', null)), FIRST, 0)).toBe(0)
  })

  test.each<[string, RecipientOutcome | null]>([
    ['nobody was asked', null],
    [
      'accepted without knowing',
      { kind: 'accepted', why: 'cannot-verify', stage: 'rcpt', reply: REPLY },
    ],
    ['rejected', { kind: 'rejected', why: 'no-mailbox', stage: 'rcpt', reply: REPLY }],
    ['refused us', { kind: 'blocked', why: 'blocklist', stage: 'rcpt', reply: REPLY }],
    ['silent', { kind: 'no-response', why: 'timeout', stage: 'rcpt', detail: '' }],
  ])('never if it was %s', (_, answer) => {
    expect(retryAfter({ result: result(answer), asked: true }, FIRST, null)).toBeNull()
    expect(retryAfterSeconds(result(answer))).toBeNull()
  })
})

const refused = (why: 'blocklist' | 'tls' | 'sender'): RecipientOutcome => ({
  kind: 'blocked',
  why,
  stage: 'rcpt',
  reply: REPLY,
})
const silent = (
  why: 'connect' | 'dns' | 'timeout' | 'no-address',
  stage: 'connect' | 'rcpt',
): RecipientOutcome => ({
  kind: 'no-response',
  why,
  stage,
  detail: '',
})

describe('another egress is used', () => {
  const available = () => ['a', 'b', 'c']

  test.each<[string, RecipientOutcome, string | null]>([
    ['a refusal of us', refused('blocklist'), 'b'],
    ['a refusal of our sender, which may be another there', refused('sender'), 'b'],
    ['not a demand for TLS', refused('tls'), null],
    ['a host that was not reached', silent('connect', 'connect'), 'b'],
    ['a host that was not reached in time', silent('timeout', 'connect'), 'b'],
    ['not a host that keeps silent', silent('timeout', 'rcpt'), null],
    ['not a host without an address', silent('no-address', 'connect'), null],
    ['not a greylist', deferred('greylist', null), null],
    ['not a wish to be asked slowly', deferred('rate', null), null],
  ])('after %s', (_, answer, next) => {
    expect(alternativeEgress(['a'], answer, available)).toBe(next)
  })

  test('each once, and only if available', () => {
    expect(alternativeEgress(['a', 'b'], refused('blocklist'), available)).toBe('c')
    expect(alternativeEgress(['a', 'b', 'c'], refused('blocklist'), available)).toBeNull()
    expect(alternativeEgress(['a'], refused('blocklist'), () => ['c', 'b'])).toBe('c')
    expect(alternativeEgress(['a'], refused('blocklist'), () => [])).toBeNull()
  })

  test('once for an unreachable host', () => {
    expect(alternativeEgress(['a', 'b'], silent('connect', 'connect'), available)).toBeNull()
  })
})

describe('an item of a list', () => {
  const FIRST_PAST = { tries: 0, waitedMs: 0, egress: null, refusedBy: [] }
  const PAST = { tries: 2, waitedMs: 0, egress: null, refusedBy: [] }
  const TERMS = {
    wait: true,
    greylistDelayMs: null,
    available: () => ['a', 'b'],
    uncertainForMs: (): number | null => null,
    dnsUncertainForMs: (): number | null => null,
    refusedForMs: () => 0,
    unservedForMs: () => 0,
    servedAgoMs: () => Number.POSITIVE_INFINITY,
  }
  test('that was blocked moves to another egress at once and starts from zero', () => {
    const anew = { delayMs: 0, tries: 0, egress: 'b', refusedBy: ['a'], accepted: null }
    expect(nextRetry(heard(refused('blocklist')), PAST, TERMS)).toEqual(anew)
    expect(nextRetry(heard(refused('blocklist')), PAST, { ...TERMS, wait: false })).toEqual(anew)
  })

  test('that is blocked for every egress is final', () => {
    const past = { ...PAST, egress: 'a', refusedBy: ['b'] }
    expect(nextRetry(heard(refused('blocklist')), past, TERMS)).toBeNull()
  })

  test('that was deferred stays with its egress', () => {
    const past = { ...PAST, tries: 0, refusedBy: ['b'] }
    const again = {
      delayMs: 5 * MINUTE,
      tries: 1,
      egress: 'a',
      refusedBy: ['b'],
      accepted: null,
    }
    expect(nextRetry(heard(deferred('greylist', null)), past, TERMS)).toEqual(again)
    expect(nextRetry(heard(deferred('greylist', null)), past, { ...TERMS, wait: false })).toBeNull()
  })

  test('that waits for a pause without a probe keeps its egress', () => {
    const pause = heard(deferred('rate', MINUTE), false)
    const again = { delayMs: MINUTE, tries: 2, egress: null, refusedBy: [], accepted: null }
    expect(nextRetry(pause, PAST, TERMS)).toEqual(again)
    expect(nextRetry(pause, { ...PAST, egress: 'a' }, TERMS)).toMatchObject({ egress: 'a' })
  })

  test('that was not probed because of a block waits until the block ends', () => {
    const unasked = heard(refused('sender'), false)
    const terms = { ...TERMS, available: () => [], refusedForMs: () => 20 * MINUTE }
    const again = { delayMs: 20 * MINUTE, tries: 2, egress: null, refusedBy: [], accepted: null }
    expect(nextRetry(unasked, PAST, terms)).toEqual(again)
    expect(nextRetry(unasked, { ...PAST, egress: 'a' }, terms)).toEqual({ ...again, egress: 'a' })
    // An egress that was blocked before may probe it again.
    expect(nextRetry(unasked, { ...PAST, egress: 'b', refusedBy: ['a'] }, terms)).toEqual(again)
    expect(nextRetry(unasked, PAST, { ...terms, wait: false })).toBeNull()
    expect(nextRetry(unasked, { ...PAST, waitedMs: 4 * 60 * MINUTE }, terms)).toBeNull()
    expect(nextRetry(heard(refused('sender')), PAST, terms)).toBeNull()
  })

  test('waits for its turn while its operator serves others', () => {
    const waited = { ...PAST, tries: 0, waitedMs: 9 * HOUR }
    const blocked = heard(refused('sender'), false)
    for (const outcome of [heard(deferred('greylist', null)), heard(deferred('rate', null), false)])
      for (const [servedAgoMs, isRetried] of [
        [MINUTE, true],
        [4 * HOUR, false],
      ] as const) {
        const retry = nextRetry(outcome, waited, { ...TERMS, servedAgoMs: () => servedAgoMs })
        expect(retry !== null).toBe(isRetried)
      }
    const serving = { ...TERMS, available: () => [], servedAgoMs: () => MINUTE }
    expect(nextRetry(blocked, waited, serving)).not.toBeNull()
    expect(nextRetry(blocked, waited, { ...serving, servedAgoMs: () => 4 * HOUR })).toBeNull()
  })

  test('does not wait for an operator that has served nobody for four hours', () => {
    const terms = { ...TERMS, available: () => [], servedAgoMs: () => 5 * HOUR }
    for (const outcome of [heard(deferred('rate', null), false), heard(refused('sender'), false)]) {
      expect(
        nextRetry(outcome, PAST, { ...terms, unservedForMs: () => 4 * HOUR - 1 }),
      ).not.toBeNull()
      expect(nextRetry(outcome, PAST, { ...terms, unservedForMs: () => 4 * HOUR })).toBeNull()
    }
  })

  test('with unreachable hosts waits until the reachability is known', () => {
    const unreached = heard(silent('connect', 'connect'))
    const past = { ...PAST, egress: 'a', refusedBy: ['b'] }
    const doubtful = { ...TERMS, uncertainForMs: () => 7_000 }
    // Not an attempt, because no server was probed.
    expect(nextRetry(unreached, past, doubtful)).toEqual({
      delayMs: 7_000,
      tries: 2,
      egress: 'a',
      refusedBy: ['b'],
      accepted: null,
    })
    // The port was blocked when this outcome was made, and the next dial tells whether it still is.
    const due = { ...TERMS, uncertainForMs: () => 0 }
    expect(nextRetry(unreached, past, due)?.delayMs).toBe(1_000)
    expect(nextRetry(unreached, past, TERMS)).toBeNull()
    expect(nextRetry(unreached, past, { ...doubtful, wait: false })).toBeNull()
    expect(nextRetry(heard(silent('no-address', 'connect')), past, doubtful)).toBeNull()
    expect(nextRetry(heard(silent('timeout', 'rcpt')), past, doubtful)).toBeNull()
    expect(nextRetry(heard(silent('dns', 'connect')), past, doubtful)).toBeNull()
  })

  test('at a host that served us and then fails is retried after five minutes, for four hours', () => {
    const lost = { ...heard(silent('connect', 'connect')), isLost: true }
    const past = { ...PAST, egress: 'a', refusedBy: ['b'] }
    // Not an attempt, because no server was probed.
    expect(nextRetry(lost, past, TERMS)).toEqual({
      delayMs: 5 * MINUTE,
      tries: 2,
      egress: null,
      refusedBy: [],
      accepted: null,
    })
    expect(nextRetry(lost, { ...past, waitedMs: 4 * HOUR }, TERMS)).toBeNull()
    expect(nextRetry(lost, past, { ...TERMS, wait: false })).toBeNull()
  })

  test('with failed lookups waits for the next check of the DNS server, for at most ten minutes', () => {
    const unresolved = heard(silent('dns', 'connect'), false)
    const doubtful = { ...TERMS, dnsUncertainForMs: () => 7_000 }
    expect(nextRetry(unresolved, PAST, doubtful)).toEqual({
      delayMs: 7_000,
      tries: 2,
      egress: null,
      refusedBy: [],
      accepted: null,
    })
    expect(nextRetry(unresolved, PAST, TERMS)).toBeNull()
    expect(nextRetry(unresolved, PAST, { ...doubtful, wait: false })).toBeNull()
    expect(nextRetry(unresolved, { ...PAST, waitedMs: 10 * MINUTE }, doubtful)).toBeNull()
    expect(nextRetry(heard(silent('timeout', 'rcpt')), PAST, doubtful)).toBeNull()
  })

  test('with failed lookups that the DNS server is not to blame for is retried twice, after a minute each', () => {
    const unresolved = heard(silent('dns', 'connect'), false)
    const fresh = { ...PAST, tries: 0 }
    const again = { delayMs: MINUTE, egress: 'a', refusedBy: [], accepted: null }
    expect(nextRetry(unresolved, { ...fresh, egress: 'a' }, TERMS)).toEqual({ ...again, tries: 1 })
    expect(nextRetry(unresolved, { ...PAST, tries: 1 }, TERMS)).toMatchObject({ tries: 2 })
    expect(nextRetry(unresolved, { ...PAST, tries: 2 }, TERMS)).toBeNull()
    expect(nextRetry(unresolved, fresh, { ...TERMS, wait: false })).toBeNull()
    expect(nextRetry(heard(silent('timeout', 'rcpt'), false), fresh, TERMS)).toBeNull()
    // The DNS server has been in doubt for too long.
    const doubtful = { ...TERMS, dnsUncertainForMs: () => 7_000 }
    expect(nextRetry(unresolved, { ...fresh, waitedMs: 10 * MINUTE }, doubtful)).toBeNull()
  })

  test('that was answered, or never probed, is final', () => {
    const known = { ...heard(null), result: result(ACCEPTED, false) }
    expect(nextRetry(known, PAST, TERMS)).toBeNull()
    expect(nextRetry(heard(null), PAST, TERMS)).toBeNull()
    expect(nextRetry(heard(null, false), PAST, TERMS)).toBeNull()
  })

  test('that was accepted in an untested domain keeps the acceptance for the retry', () => {
    const untested = heard(ACCEPTED)
    const again = nextRetry(untested, { ...PAST, tries: 0 }, TERMS)
    expect(again).toMatchObject({ delayMs: 5 * MINUTE, tries: 1, egress: 'a' })
    expect(again?.accepted).toMatchObject({ answer: ACCEPTED, at: untested.result.checkedAt })
    expect(nextRetry(untested, PAST, { ...TERMS, wait: false })).toBeNull()
  })

  test('is tested at most four times, so that an acceptance at the last attempt gets one more test', () => {
    expect(nextRetry(heard(ACCEPTED), { ...PAST, tries: 2 }, TERMS)).toMatchObject({ tries: 3 })
    expect(nextRetry(heard(ACCEPTED), { ...PAST, tries: 3 }, TERMS)).toBeNull()
    expect(nextRetry(heard(ACCEPTED), { ...PAST, waitedMs: 4 * HOUR }, TERMS)).toBeNull()
  })

  test('that waits for its test without a probe may use another egress', () => {
    const again = nextRetry(heard(ACCEPTED, false), { ...PAST, egress: 'a' }, TERMS)
    expect(again).toMatchObject({ delayMs: 5 * MINUTE, tries: 2, egress: null })
  })

  test('that only a catch-all backup accepted is probed three times', () => {
    const outcome = { ...heard(null), result: result(ACCEPTED, true), isBackupOnly: true }
    const again = nextRetry(outcome, { ...PAST, tries: 0 }, TERMS)
    expect(again).toMatchObject({ delayMs: 5 * MINUTE, tries: 1, accepted: null })
    expect(nextRetry(outcome, PAST, TERMS)).toBeNull()
    expect(nextRetry({ ...outcome, isBackupOnly: false }, FIRST_PAST, TERMS)).toBeNull()
  })

  test('that came from the cache is final', () => {
    const remembered = { ...heard(ACCEPTED), result: { ...result(ACCEPTED), cached: true } }
    expect(nextRetry(remembered, PAST, TERMS)).toBeNull()
  })
})

describe('a result is decided', () => {
  const rejected = { kind: 'rejected', why: 'no-mailbox', stage: 'rcpt', reply: REPLY } as const
  const tested = (isBackupOnly?: boolean) => ({
    ...heard(ACCEPTED),
    result: result(ACCEPTED, false),
    ...(isBackupOnly === undefined ? {} : { isBackupOnly }),
  })

  test('by a rejection, and by an acceptance once the domain is tested', () => {
    expect(isDecided(heard(rejected))).toBe(true)
    expect(isDecided(tested())).toBe(true)
    expect(isDecided(tested(false))).toBe(true)
  })

  test('neither by an acceptance of an untested domain nor by one of a backup MX only', () => {
    expect(isDecided(heard(ACCEPTED))).toBe(false)
    expect(isDecided(tested(true))).toBe(false)
  })

  test.each<[string, RecipientOutcome | null]>([
    ['no answer', null],
    ['a deferral', deferred('greylist', null)],
    ['a block', refused('blocklist')],
    ['silence', silent('timeout', 'rcpt')],
  ])('not by %s', (_, answer) => {
    expect(isDecided(heard(answer))).toBe(false)
  })
})

test.each<[RecipientOutcome, number | null]>([
  [deferred('greylist', null), 300],
  [deferred('greylist', 1), 1],
  [deferred('busy', 90_500), 91],
  [deferred('busy', null), null],
])('a single verification may be retried: %j after %s s', (answer, seconds) => {
  expect(retryAfterSeconds(result(answer))).toBe(seconds)
})
