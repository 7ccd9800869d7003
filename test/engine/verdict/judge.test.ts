import { describe, expect, test } from 'vitest'
import { parseAddress } from '../../../src/engine/address/address.ts'
import type { AddressFlags } from '../../../src/engine/address/classifier.ts'
import type { NoResponseReason, Stage } from '../../../src/engine/smtp/classify-reply.ts'
import type {
  BlockedReason,
  DeferredReason,
  RejectedReason,
} from '../../../src/engine/smtp/reply-rules/generic.ts'
import { judge, toEvidence, toResult, toRowResult } from '../../../src/engine/verdict/judge.ts'
import type { Reason } from '../../../src/engine/verdict/reason.ts'
import { type Evidence, isFailure, toClass } from '../../../src/engine/verdict/verdict.ts'
import { fakeClock } from '../../support/clock.ts'
import { fc, runs } from '../../support/property.ts'

const REPLY = { code: 250, enhanced: null, text: 'as the case may be' }
const TRAITS: AddressFlags = {
  disposable: false,
  role: false,
  free: false,
  relay: false,
  blocked: false,
  spamTrap: false,
  quality: null,
  canonical: 'ann@a.test',
}
const ROUTE = { kind: 'mx', hosts: [{ preference: 10, host: 'mx.a.test' }] } as const

/** An accepted mailbox of a trustworthy domain. Each case overrides what it tests. */
const GOOD: Evidence = {
  address: parseAddress('ann@a.test'),
  flags: TRAITS,
  suggestion: null,
  typo: null,
  disposableHost: false,
  route: ROUTE,
  operator: null,
  answer: { kind: 'accepted', why: 'recipient', stage: 'rcpt', reply: REPLY },
  catchAll: false,
  egress: 'default',
  host: 'mx.a.test',
  ip: '192.0.2.1',
  tls: false,
  timings: { dnsMs: 1, connectMs: 1 },
  skipped: null,
  failure: null,
  dialogue: null,
}

const flags = (some: Partial<AddressFlags>): Partial<Evidence> => ({
  flags: { ...TRAITS, ...some },
})
const rejected = (why: RejectedReason): Partial<Evidence> => ({
  answer: { kind: 'rejected', why, stage: 'rcpt', reply: REPLY },
})
const refused = (why: BlockedReason, stage: Stage = 'rcpt'): Partial<Evidence> => ({
  answer: { kind: 'blocked', why, stage, reply: REPLY },
})
const deferred = (why: DeferredReason, stage: Stage = 'rcpt'): Partial<Evidence> => ({
  answer: { kind: 'deferred', why, retryAfterMs: null, stage, reply: REPLY },
})
const silent = (why: NoResponseReason, stage: Stage = 'connect'): Partial<Evidence> => ({
  answer: { kind: 'no-response', why, stage, detail: 'as the case may be' },
})
const accepted = (why: 'recipient' | 'cannot-verify' | 'restricted'): Partial<Evidence> => ({
  answer: { kind: 'accepted', why, stage: 'rcpt', reply: REPLY },
})

const reasonOf = (...changes: Partial<Evidence>[]) =>
  judge(Object.assign({}, GOOD, ...changes)).reason

describe('a single problem', () => {
  test.each<[Reason, Partial<Evidence>]>([
    ['accepted_email', {}],
    ['low_deliverability', { catchAll: null }],
    ['unexpected_error', { failure: 'out of memory' }],
    ['invalid_email', { address: parseAddress('ann@') }],
    ['blocklisted', flags({ blocked: true })],
    ['invalid_domain', { route: { kind: 'no-domain' } }],
    ['no_mx_record', { route: { kind: 'no-mail' } }],
    ['does_not_accept_mail', { route: { kind: 'null-mx' } }],
    ['dns_error', { route: { kind: 'unknown', fault: 'server' } }],
    ['dns_error', { route: { kind: 'unknown', fault: 'timeout' } }],
    ['spam_trap', flags({ spamTrap: true })],
    ['disposable_email', flags({ disposable: true })],
    ['disposable_email', { disposableHost: true }],
    ['does_not_accept_mail', rejected('no-mail')],
    ['mailbox_full', rejected('full')],
    ['mailbox_disabled', rejected('disabled')],
    ['rejected_email', rejected('no-mailbox')],
    ['rejected_email', rejected('moved')],
    ['rejected_email', rejected('not-hosted')],
    ['probe_blocked', refused('blocklist')],
    ['probe_blocked', refused('rdns')],
    ['probe_blocked', refused('sender')],
    ['probe_blocked', refused('tls')],
    ['probe_blocked', refused('auth')],
    ['probe_blocked', refused('policy')],
    ['greylisted', deferred('greylist')],
    ['unavailable_smtp', deferred('rate')],
    ['unavailable_smtp', deferred('too-many')],
    ['unavailable_smtp', deferred('busy')],
    ['no_mx_record', silent('no-address')],
    ['dns_error', silent('dns')],
    ['no_connect', silent('connect')],
    ['no_connect', silent('not-public')],
    ['timeout', silent('timeout')],
    ['unavailable_smtp', silent('closed')],
    ['invalid_smtp', silent('tls')],
    ['invalid_smtp', silent('garbage')],
    ['smtp_skipped', silent('smtputf8')],
    ['smtp_skipped', silent('own-limit')],
    ['smtp_skipped', { answer: null, skipped: 'unwanted' }],
    ['low_deliverability', accepted('cannot-verify')],
    ['low_deliverability', accepted('restricted')],
    ['catch_all', { catchAll: true }],
    ['role_account', flags({ role: true })],
    ['possible_typo', { suggestion: 'ann@b.test' }],
    ['low_quality', flags({ quality: 'low' })],
  ])('%s for %j', (reason, change) => {
    expect(reasonOf(change)).toBe(reason)
  })
})

/**
 * The precedence of rules. An internal error comes first, because nothing else is certain then; a
 * conditional acceptance of the mailbox precedes the catch-all status of the domain.
 */
const PRECEDENCE: readonly [Reason, Partial<Evidence>][] = [
  ['unexpected_error', { failure: 'out of memory' }],
  ['invalid_email', { address: parseAddress('ann@') }],
  ['blocklisted', flags({ blocked: true })],
  ['invalid_domain', { route: { kind: 'no-domain' } }],
  ['spam_trap', flags({ spamTrap: true })],
  ['disposable_email', flags({ disposable: true })],
  ['rejected_email', rejected('no-mailbox')],
  ['catch_all', { catchAll: true }],
  ['role_account', flags({ role: true })],
  ['possible_typo', { suggestion: 'ann@b.test' }],
  ['low_quality', flags({ quality: 'low' })],
  ['accepted_email', {}],
]

describe('precedence', () => {
  const pairs = PRECEDENCE.flatMap(([reason, change], index) =>
    PRECEDENCE.slice(index + 1).map(
      ([lesser, lesserChange]) => [reason, lesser, both(lesserChange, change)] as const,
    ),
  )

  test.each(pairs)('%s takes precedence over %s', (reason, _, change) => {
    expect(reasonOf(change)).toBe(reason)
  })

  test.each<[Reason, Partial<Evidence>]>([
    ['no_mx_record', { route: { kind: 'no-mail' } }],
    ['does_not_accept_mail', { route: { kind: 'null-mx' } }],
    ['dns_error', { route: { kind: 'unknown', fault: 'timeout' } }],
    ['no_mx_record', silent('no-address')],
    ['dns_error', silent('dns')],
  ])(
    'the DNS reason %s takes precedence over a spam trap and a disposable domain',
    (reason, change) => {
      const flags = { ...TRAITS, spamTrap: true, disposable: true }
      expect(reasonOf({ flags }, change)).toBe(reason)
    },
  )

  test.each<[Reason, Partial<Evidence>]>([
    ['mailbox_full', rejected('full')],
    ['mailbox_disabled', rejected('disabled')],
    ['probe_blocked', refused('blocklist')],
    ['greylisted', deferred('greylist')],
    ['unavailable_smtp', deferred('busy')],
    ['timeout', silent('timeout')],
    ['no_connect', silent('connect')],
    ['invalid_smtp', silent('garbage')],
    ['smtp_skipped', { answer: null }],
    ['low_deliverability', accepted('restricted')],
  ])('the SMTP reason %s takes precedence over the form of the address', (reason, change) => {
    const looks = { flags: { ...TRAITS, role: true, quality: 'low' as const } }
    expect(reasonOf(looks, { catchAll: true, suggestion: 'ann@b.test' }, change)).toBe(reason)
  })
})

describe('a misspelling of a large provider', () => {
  const typo: Partial<Evidence> = { suggestion: 'ann@b.test', typo: 'certain' }
  const likely: Partial<Evidence> = { suggestion: 'ann@b.test', typo: 'likely' }
  const parked = { operator: { name: 'p', title: 'P', truth: 'parked' } } as const
  const ofHighRisk = { reason: 'possible_typo', valid: true, deliverable: false, risk: 'high' }
  const judged = (...changes: Partial<Evidence>[]) => judge(Object.assign({}, GOOD, ...changes))

  test.each([
    ['certain', typo],
    ['likely', likely],
  ])('is of high risk if the domain is a catch-all or parked: %s', (_, change) => {
    expect(judged(change, { catchAll: true })).toMatchObject(ofHighRisk)
    expect(judged(change, parked, { answer: null })).toMatchObject(ofHighRisk)
    expect(judged(change, parked, { answer: null }).details).toEqual({
      syntaxValid: true,
      domainExists: true,
      mxRecord: true,
      smtpValid: false,
    })
  })

  test('has the verdict of its server if it is only likely', () => {
    expect(judged(typo).reason).toBe('possible_typo')
    expect(judged(likely)).toEqual(judged())
    expect(judged(likely, rejected('no-mailbox')).reason).toBe('rejected_email')
    expect(judged(typo, { catchAll: true }, rejected('no-mailbox')).reason).toBe('rejected_email')
  })

  test('does not affect other domains of a parking service', () => {
    expect(judged(parked, { catchAll: true }).reason).toBe('catch_all')
  })
})

describe('a text that the server gave to random recipients', () => {
  const learned = (scope: 'domain' | 'operator' | 'software') =>
    judge({
      ...GOOD,
      answer: {
        kind: 'rejected',
        why: 'no-mailbox',
        stage: 'rcpt',
        reply: REPLY,
        learned: { scope, domains: 3 },
      },
    })

  test.each([
    ['domain', 90],
    ['operator', 85],
    ['software', 85],
  ] as const)('of the %s is a rejection with the confidence %i', (scope, confidence) => {
    expect(learned(scope)).toEqual({
      class: 'undeliverable',
      valid: false,
      deliverable: false,
      risk: 'high',
      reason: 'rejected_email',
      confidence,
      details: { syntaxValid: true, domainExists: true, mxRecord: true, smtpValid: false },
    })
  })

  test('is less certain than a text that a rule knows', () => {
    expect(judge({ ...GOOD, ...rejected('no-mailbox') }).confidence).toBeGreaterThan(90)
  })
})

describe('evidence that was not determined', () => {
  const address = parseAddress('ann@a.test')

  test('claims nothing: all fields are there, and none has a value', () => {
    const { address: _, timings, ...rest } = toEvidence({ address })
    expect(Object.keys(toEvidence({ address })).toSorted()).toEqual(Object.keys(GOOD).toSorted())
    expect(timings).toEqual({ dnsMs: null, connectMs: null })
    for (const value of Object.values(rest)) expect([null, false]).toContain(value)
  })

  test('decides nothing', () => {
    expect(judge(toEvidence({ address })).reason).toBe('smtp_skipped')
    const answered = toEvidence({ address, ...accepted('recipient'), catchAll: false })
    expect(judge(answered).reason).toBe('accepted_email')
  })

  test.each([false, null])(
    'an answer that no rule knows is never accepted: catch-all %s',
    catchAll => {
      const answer = { kind: 'future', why: 'future', stage: 'rcpt' } as never
      const verdict = judge({ ...GOOD, answer, catchAll })
      expect(verdict).toMatchObject({ reason: 'unexpected_error', class: 'unknown' })
      expect(isFailure(verdict)).toBe(true)
      expect(isFailure(judge(GOOD))).toBe(false)
    },
  )
})

describe('a result', () => {
  const clock = fakeClock()
  const of = (text: string, startedAt = clock.monotonicNow() - 12.4) =>
    toResult(clock, text, startedAt, { ...GOOD, address: parseAddress(text) })

  test('has the verdict, the domain, the time it took and when it was determined', () => {
    const result = of('ann@Bücher.test')
    expect(result).toMatchObject({
      email: 'ann@Bücher.test',
      provider: 'xn--bcher-kva.test',
      tookMs: 12,
      cached: false,
      checkedAt: clock.now(),
    })
    expect(result.verdict).toEqual(judge(result.evidence))
    expect(of('ann@').provider).toBeNull()
  })

  test('took no time if the clock was set back', () => {
    expect(of('ann@a.test', clock.monotonicNow() + 5_000).tookMs).toBe(0)
  })

  test.each(['', ' ', 'n/a', 'N/A'])('of a row of a list that says %j has no address', text => {
    const result = of(text)
    expect(result.verdict.reason).toBe('invalid_email')
    expect(toRowResult(result)).toEqual({
      ...result,
      verdict: {
        class: 'unknown',
        valid: false,
        deliverable: false,
        risk: 'unknown',
        reason: 'no_address',
        confidence: 0,
        details: { syntaxValid: false, domainExists: false, mxRecord: false, smtpValid: false },
      },
    })
  })

  test.each(['ann@', 'ann@a.test'])('of a row that says %j stays as it is', text => {
    const result = of(text)
    expect(toRowResult(result)).toBe(result)
  })
})

describe('details', () => {
  test('are those of the reason: exchangers without an address are no mail server', () => {
    const { reason, details } = judge({ ...GOOD, ...silent('no-address') })
    expect(reason).toBe('no_mx_record')
    expect(details).toMatchObject({ domainExists: true, mxRecord: false })
  })

  test('take smtpValid from the evidence if the template leaves it open', () => {
    const blocked = { flags: { ...TRAITS, blocked: true } }
    expect(judge({ ...GOOD, ...blocked }).details.smtpValid).toBe(true)
    expect(judge({ ...GOOD, ...blocked, answer: null }).details.smtpValid).toBe(false)
  })

  test.each<[string, Partial<Evidence>, string]>([
    ['nothing', { route: null, answer: null }, 'TFFF'],
    ['no address', { address: parseAddress('ann@'), route: null, answer: null }, 'FFFF'],
    ['an exchanger', { answer: null }, 'TTTF'],
    ['its own exchanger', { route: { kind: 'implicit', host: 'a.test' }, answer: null }, 'TTTF'],
    ['a domain without mail', { route: { kind: 'no-mail' }, answer: null }, 'TTFF'],
    ['a null MX', { route: { kind: 'null-mx' }, answer: null }, 'TTFF'],
    ['no domain', { route: { kind: 'no-domain' }, answer: null }, 'TFFF'],
    ['a mailbox', {}, 'TTTT'],
  ])('follow the evidence after an internal error: %s', (_, seen, marks) => {
    const { reason, details } = judge({ ...GOOD, ...seen, failure: 'out of memory' })
    expect(reason).toBe('unexpected_error')
    expect(
      [details.syntaxValid, details.domainExists, details.mxRecord, details.smtpValid]
        .map(value => (value ? 'T' : 'F'))
        .join(''),
    ).toBe(marks)
  })
})

describe('never invalid for internal problems', () => {
  const stage = fc.constantFrom<Stage>(
    ...(['connect', 'greeting', 'ehlo', 'starttls', 'mail', 'rcpt', 'rset'] as const),
  )
  /** All missing replies, except a definite DNS answer that no exchanger has an address. */
  const silence = fc.constantFrom<NoResponseReason>(
    ...(['dns', 'connect', 'timeout', 'closed', 'tls', 'garbage', 'not-public'] as const),
    'smtputf8',
  )
  const refusal = fc.constantFrom<BlockedReason>(
    ...(['blocklist', 'rdns', 'sender', 'tls', 'auth', 'policy'] as const),
  )
  const delay = fc.constantFrom<DeferredReason>('greylist', 'rate', 'too-many', 'busy')
  const trouble = fc.oneof(
    fc.tuple(silence, stage).map(([why, stage]) => silent(why, stage)),
    fc.tuple(refusal, stage).map(([why, stage]) => refused(why, stage)),
    fc.tuple(delay, stage).map(([why, stage]) => deferred(why, stage)),
    fc.constantFrom('server' as const, 'timeout' as const).map(fault => ({
      route: { kind: 'unknown' as const, fault },
      answer: null,
    })),
    fc.constant({ answer: null }),
    fc.string().map(failure => ({ failure })),
  )
  const looks = fc.record({
    catchAll: fc.constantFrom(true, false, null),
    suggestion: fc.constantFrom('ann@b.test', null),
    typo: fc.constantFrom('certain' as const, 'likely' as const, null),
    disposableHost: fc.boolean(),
    flags: fc.record({
      disposable: fc.boolean(),
      role: fc.boolean(),
      free: fc.boolean(),
      relay: fc.boolean(),
      blocked: fc.boolean(),
      spamTrap: fc.boolean(),
      quality: fc.constantFrom('low' as const, null),
      canonical: fc.constant('ann@a.test'),
    }),
  })

  test('whatever the problem and the form of the address', () => {
    fc.assert(
      fc.property(trouble, looks, (trouble, looks) => {
        const verdict = judge({ ...GOOD, ...looks, ...trouble })
        expect(verdict.valid === false && verdict.risk === 'high', verdict.reason).toBe(false)
        expect(verdict.deliverable, verdict.reason).toBe(false)
        expect(toClass(verdict)).not.toBe('undeliverable')
      }),
      { numRuns: runs(1_000) },
    )
  })
})

/** Combines two changes: flags are merged; elsewhere the second takes precedence. */
function both(one: Partial<Evidence>, other: Partial<Evidence>): Partial<Evidence> {
  const amiss = [one.flags, other.flags]
    .flatMap(flags => Object.entries(flags ?? {}))
    .filter(([key, value]) => value !== TRAITS[key as keyof AddressFlags])
  return { ...one, ...other, flags: { ...TRAITS, ...Object.fromEntries(amiss) } }
}
