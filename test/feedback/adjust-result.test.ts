import { describe, expect, test } from 'vitest'
import type { Reason } from '../../src/engine/verdict/reason.ts'
import { toClass } from '../../src/engine/verdict/verdict.ts'
import { newAddressState } from '../../src/feedback/address-state.ts'
import {
  adjustResult,
  DOMAIN_TOTAL_MIN,
  HIGH_BOUNCE_RATE_MIN,
  type Knowledge,
  LOW_BOUNCE_RATE_MAX,
} from '../../src/feedback/adjust-result.ts'
import { buildModel } from '../../src/feedback/calibration-model.ts'
import type { AddressState } from '../../src/feedback/feedback-store.ts'
import { resultOf } from '../support/result.ts'

const PROBED_AT = 1_000_000
const OLDER = PROBED_AT - 1
const NEWER = PROBED_AT + 1

const state = (o: Partial<AddressState>): AddressState => ({
  ...newAddressState('ann@good.test', 'acc_1'),
  ...o,
})
const bounced = (occurred_at: number, o: Partial<AddressState> = {}) =>
  state({ outcome: 'dead', kind: 'bounced', code: 550, occurred_at, ...o })
const delivered = (occurred_at: number) =>
  state({ outcome: 'alive', kind: 'delivered', occurred_at })

function adjust(reason: Reason, knowledge: Partial<Knowledge>) {
  const result = resultOf(reason, { checkedAt: PROBED_AT })
  return adjustResult(result, { state: null, domain: null, model: null, ...knowledge })
}

describe('feedback about the address', () => {
  test.each<[Reason, string, AddressState, Reason | null]>([
    // An acceptance by a server that rejects unknown mailboxes is newer evidence.
    ['accepted_email', 'an older bounce', bounced(OLDER), null],
    ['accepted_email', 'a newer bounce', bounced(NEWER), 'rejected_email'],
    [
      'accepted_email',
      'a bounce after an acceptance',
      bounced(OLDER, { contradicted: 1 }),
      'rejected_email',
    ],
    ['role_account', 'a newer bounce', bounced(NEWER), 'rejected_email'],
    // A probe without a firm answer is not newer evidence.
    ['catch_all', 'an older bounce', bounced(OLDER), 'rejected_email'],
    ['timeout', 'an older bounce', bounced(OLDER), 'rejected_email'],
    ['probe_blocked', 'an older delivery', delivered(OLDER), 'accepted_email'],
    ['catch_all', 'an older delivery', delivered(OLDER), 'catch_all'],
    ['low_deliverability', 'an older delivery', delivered(OLDER), 'accepted_email'],
    // A rejection is newer than a delivery, unless the delivery is newer.
    ['rejected_email', 'an older delivery', delivered(OLDER), null],
    ['rejected_email', 'a newer delivery', delivered(NEWER), 'accepted_email'],
    // Mail to these arrives or not for other reasons.
    ['disposable_email', 'a newer bounce', bounced(NEWER), null],
    ['blocklisted', 'a newer delivery', delivered(NEWER), null],
    ['invalid_domain', 'an older delivery', delivered(OLDER), null],
  ])('%s with %s', (reason, _, known, expected) => {
    const before = resultOf(reason, { checkedAt: PROBED_AT })
    const { verdict, evidence } = adjust(reason, { state: known })
    expect(verdict.reason).toBe(expected ?? reason)
    if (expected === null) expect(verdict).toEqual(before.verdict)
    expect(evidence.feedback).toMatchObject({ kind: known.kind, decides: expected !== null })
  })

  test('makes a catch-all address low risk if mail arrived', () => {
    const { verdict } = adjust('catch_all', { state: delivered(OLDER) })
    const expected = { class: 'deliverable', risk: 'low', deliverable: true, valid: true }
    expect(verdict).toMatchObject({ ...expected, confidence: 95 })
    expect(toClass(verdict)).toBe('deliverable')
  })

  test.each<[Reason, string, AddressState]>([
    ['dns_error', 'bounce', bounced(OLDER)],
    ['dns_error', 'delivery', delivered(OLDER)],
    ['no_connect', 'bounce', bounced(OLDER)],
    ['probe_blocked', 'delivery', delivered(OLDER)],
  ])('after %s and a reported %s claims no detail that was not tested', (reason, _, known) => {
    const { verdict, evidence } = adjust(reason, { state: known })
    expect(evidence.feedback?.decides).toBe(true)
    expect(verdict.details).toEqual(resultOf(reason).verdict.details)
  })

  test('makes smtp_valid false if an accepted address bounced', () => {
    const { details } = adjust('catch_all', { state: bounced(OLDER) }).verdict
    expect(details).toMatchObject({ domainExists: true, mxRecord: true, smtpValid: false })
  })

  test('is left out where there is none', () => {
    const result = resultOf('accepted_email')
    const none = { state: state({}), domain: null, model: null }
    expect(adjustResult(result, none)).toEqual(result)
  })
})

describe('the bounce rate of a catch-all domain', () => {
  test.each<[number, number, string, boolean]>([
    [0, DOMAIN_TOTAL_MIN, 'high', false],
    [DOMAIN_TOTAL_MIN, 0, 'medium', false],
    [40, 0, 'low', true],
    [500, 10, 'low', true],
    [80, 20, 'medium', false],
    [30, 30, 'high', false],
  ])('%i delivered and %i bounced: %s', (alive, dead, risk, deliverable) => {
    const { verdict, evidence } = adjust('catch_all', {
      domain: { domain: 'good.test', alive, dead },
    })
    expect(verdict).toMatchObject({ reason: 'catch_all', risk, deliverable, valid: true })
    expect(evidence.domainFeedback).toMatchObject({ delivered: alive, bounced: dead })
    const { rateMin, rateMax } = evidence.domainFeedback ?? { rateMin: 0, rateMax: 1 }
    if (risk === 'low') expect(rateMax).toBeLessThanOrEqual(LOW_BOUNCE_RATE_MAX)
    if (risk === 'high') expect(rateMin).toBeGreaterThanOrEqual(HIGH_BOUNCE_RATE_MIN)
  })

  test('needs enough addresses, and counts for no other reason', () => {
    const domain = { domain: 'good.test', alive: 0, dead: DOMAIN_TOTAL_MIN - 1 }
    expect(adjust('catch_all', { domain })).toEqual(resultOf('catch_all', { checkedAt: PROBED_AT }))
    const many = { ...domain, dead: 1_000 }
    expect(adjust('accepted_email', { domain: many }).verdict.risk).toBe('low')
  })
})

describe('confidence', () => {
  const counted = (reason: string) =>
    buildModel(
      [{ period: 0, reason, operator: '', confidence: 95, correct: 500, wrong: 500 }],
      [],
      0,
    )

  test('is measured, and the evidence says how', () => {
    const { verdict, evidence } = adjust('accepted_email', { model: counted('accepted_email') })
    expect(verdict).toMatchObject({ confidence: 50, risk: 'low', deliverable: true })
    expect(evidence.calibration).toEqual({
      fixed: 95,
      operator: null,
      domain: null,
      reason: {
        correct: 500,
        total: 1_000,
        priorWeight: expect.any(Number),
        halfLifeDays: 90,
        trend: 0,
      },
    })
  })

  test('of a catch-all domain is measured with its reports; few of them change no risk', () => {
    const domain = { domain: 'good.test', alive: 5, dead: 0 }
    const few = adjust('catch_all', { domain, model: counted('catch_all') })
    expect(few.verdict).toMatchObject({ class: 'risky', risk: 'medium', deliverable: false })
    expect(few.verdict.confidence).toBeLessThan(40)
    expect(few.evidence).toMatchObject({
      calibration: { fixed: 50, domain: { correct: 0, total: 5 } },
    })
    const many = { domain: 'good.test', alive: 80, dead: 0 }
    const low = adjust('catch_all', { domain: many, model: counted('catch_all') })
    expect(low.verdict).toMatchObject({ class: 'deliverable', risk: 'low', deliverable: true })
    expect(low.verdict.confidence).toBeGreaterThan(85)
    expect(low.evidence.calibration).toMatchObject({ fixed: 50, domain: { correct: 80 } })
  })

  test('stays fixed for a reason that feedback cannot confirm', () => {
    const { verdict, evidence } = adjust('disposable_email', { model: counted('disposable_email') })
    expect([verdict.confidence, evidence.calibration]).toEqual([90, undefined])
  })
})
