import { describe, expect, test } from 'vitest'
import { parseAddress } from '../../../src/engine/address/address.ts'
import {
  ACTION_POLICIES,
  ACTION_ROWS,
  ACTIONS,
  type Action,
  type ActionCase,
  type ActionPolicy,
  DEFAULT_ACTION_POLICY,
  decide,
  decideCase,
  decideVerdict,
  listClasses,
} from '../../../src/engine/verdict/action.ts'
import { toEvidence, UNDETERMINED } from '../../../src/engine/verdict/judge.ts'
import { CLASSES, REASONS, VERDICT_BY_REASON } from '../../../src/engine/verdict/reason.ts'
import { toClass } from '../../../src/engine/verdict/verdict.ts'
import { fc } from '../../support/property.ts'

const RISKS = ['low', 'medium', 'high', 'unknown'] as const

/** From the action that mails nothing to the one that mails without limits. */
const PERMISSIVENESS: Readonly<Record<Action, number>> = {
  suppress: 0,
  retry_later: 1,
  send_with_care: 2,
  send: 3,
}

const cases = Object.keys(ACTION_ROWS) as ActionCase[]
const verdicts = fc.record({
  reason: fc.constantFrom(...REASONS),
  risk: fc.constantFrom(...RISKS),
})
const policies = fc.constantFrom(...ACTION_POLICIES)

/** A row without an address is not trouble: there is nothing to verify. */
const TROUBLE = REASONS.filter(
  reason => VERDICT_BY_REASON[reason].class === 'unknown' && reason !== 'no_address',
)

test('a verdict that is unknown through trouble on our side is retried, never suppressed', () => {
  const troubles = fc.record({
    reason: fc.constantFrom(...TROUBLE),
    risk: fc.constantFrom(...RISKS),
  })
  fc.assert(
    fc.property(troubles, policies, (verdict, policy) => {
      expect(decideVerdict(verdict, policy).action).toBe('retry_later')
    }),
  )
})

test('a stricter policy is never more permissive', () => {
  fc.assert(
    fc.property(verdicts, verdict => {
      const [strict = 0, balanced = 0, lenient = 0] = (
        ['strict', 'balanced', 'lenient'] as const
      ).map(policy => PERMISSIVENESS[decideVerdict(verdict, policy).action])
      expect(strict).toBeLessThanOrEqual(balanced)
      expect(balanced).toBeLessThanOrEqual(lenient)
    }),
  )
})

test('no policy mails an address that is undeliverable', () => {
  const refused = REASONS.filter(reason => VERDICT_BY_REASON[reason].class === 'undeliverable')
  for (const reason of refused)
    for (const policy of ACTION_POLICIES)
      expect(decideVerdict({ reason, risk: 'high' }, policy).action).toBe('suppress')
})

test.each(ACTION_POLICIES)('%s decides every case, in one sentence', policy => {
  for (const which of cases) {
    const { action, sentence } = decideCase(which, policy)
    expect(ACTIONS, which).toContain(action)
    expect(sentence).toMatch(/^[A-Z][^.!?\n]+, so [^.!?\n]+\.$/)
  }
})

test('the policy is balanced unless another one is chosen', () => {
  expect(DEFAULT_ACTION_POLICY).toBe('balanced')
})

describe('the sentence gives the advice of the action', () => {
  test.each<[ActionCase, ActionPolicy, RegExp]>([
    ['accepted_email', 'balanced', /, so send\.$/],
    ['catch_all', 'balanced', /small batches/],
    ['timeout', 'balanced', /later/],
    ['rejected_email', 'balanced', /do not send/],
  ])('%s under %s', (which, policy, advice) => {
    expect(decideCase(which, policy).sentence).toMatch(advice)
  })

  test.each<[ActionCase, ActionPolicy, RegExp]>([
    ['role_account', 'balanced', /what it asked for/],
    ['possible_typo', 'balanced', /confirm/],
    ['low_quality', 'balanced', /confirm/],
    ['disposable_email', 'lenient', /soon/],
    ['mailbox_full', 'balanced', /in a few days/],
    ['no_address', 'balanced', /nothing to send to/],
  ])('%s under %s has its own', (which, policy, advice) => {
    expect(decideCase(which, policy).sentence).toMatch(advice)
  })
})

describe('the risk decides where a reason has several', () => {
  test.each([
    ['catch_all', 'low', 'send'],
    ['catch_all', 'medium', 'send_with_care'],
    ['catch_all', 'high', 'suppress'],
    ['possible_typo', 'medium', 'send_with_care'],
    ['possible_typo', 'high', 'suppress'],
  ] as const)('%s with %s risk: %s', (reason, risk, action) => {
    expect(decideVerdict({ reason, risk }, 'balanced').action).toBe(action)
  })
})

describe('a complaint', () => {
  const verdict = { ...VERDICT_BY_REASON.accepted_email, reason: 'accepted_email' } as const
  const evidence = toEvidence({ ...UNDETERMINED, address: parseAddress('ann@a.test') })
  const report = { occurredAt: 0, code: null, enhancedCode: null, text: null, decides: false }
  const decided = (kind: 'complained' | 'delivered' | null) =>
    decide(
      {
        verdict: { ...verdict, details: { ...verdict.details, smtpValid: true } },
        evidence: kind === null ? evidence : { ...evidence, feedback: { ...report, kind } },
      },
      'lenient',
    )

  test('suppresses an address that accepts mail, under every policy', () => {
    expect(decided('complained')).toEqual({
      action: 'suppress',
      sentence: 'The recipient reported earlier mail as spam, so do not send.',
    })
  })

  test('of another kind changes nothing', () => {
    expect(decided('delivered').action).toBe('send')
    expect(decided(null).action).toBe('send')
  })
})

test('the classes of an action are those of the verdicts that can have it', () => {
  fc.assert(
    fc.property(verdicts, policies, fc.subarray([...ACTIONS]), ({ reason }, policy, actions) => {
      const template = VERDICT_BY_REASON[reason]
      const { action } = decideVerdict({ reason, risk: template.risk }, policy)
      if (actions.includes(action)) {
        expect(listClasses(actions, policy)).toContain(toClass(template))
      }
    }),
  )
  // A complaint suppresses an address of any class.
  expect(listClasses(['suppress'], 'balanced')).toEqual(CLASSES)
  expect(listClasses(['send'], 'balanced')).toEqual(['deliverable'])
  expect(listClasses(['retry_later'], 'balanced')).toEqual(['risky', 'unknown'])
})

test('every case has a row, and every row a case', () => {
  expect(cases).toEqual(expect.arrayContaining([...REASONS]))
  expect(cases.length).toBe(REASONS.length + 4)
})
