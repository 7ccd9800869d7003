import { describe, expect, test } from 'vitest'
import { applySignals, HIGH_RISK_SHIFT_MIN, SHIFT_MAX } from '../../../src/engine/signals/signal.ts'
import { REASONS, type Reason } from '../../../src/engine/verdict/reason.ts'
import { type Signal, toClass } from '../../../src/engine/verdict/verdict.ts'
import { resultOf } from '../../support/result.ts'

const signal = (shift: number): Signal => ({ name: 'parking', shift, detail: 'A hint.' })

const apply = (reason: Reason, ...shifts: number[]) =>
  applySignals(resultOf(reason), shifts.map(signal))

describe('signals', () => {
  test.each(REASONS)('never change whether %s is valid or deliverable, or its class', reason => {
    const before = resultOf(reason).verdict
    for (const shift of [-100, 100]) {
      const { verdict } = apply(reason, shift, shift)
      expect(verdict).toMatchObject({ valid: before.valid, deliverable: before.deliverable })
      expect(toClass(verdict)).toBe(toClass(before))
      expect(Math.abs(verdict.confidence - before.confidence)).toBeLessThanOrEqual(SHIFT_MAX)
    }
  })

  test.each<Reason>(['accepted_email', 'rejected_email', 'low_quality', 'unexpected_error'])(
    'leave %s as it is',
    reason => expect(apply(reason, SHIFT_MAX)).toEqual(resultOf(reason)),
  )

  test.each<[Reason, number[], number, string]>([
    ['catch_all', [], 50, 'medium'],
    ['catch_all', [HIGH_RISK_SHIFT_MIN - 1], 64, 'medium'],
    ['catch_all', [HIGH_RISK_SHIFT_MIN], 65, 'high'],
    ['catch_all', [15, 20], 70, 'high'],
    ['catch_all', [20, -15], 55, 'medium'],
    ['catch_all', [-15, -5], 30, 'medium'],
    ['timeout', [20], 40, 'unknown'],
    ['dns_error', [-15], 0, 'unknown'],
  ])('%s with %j has confidence %i and risk %s', (reason, shifts, confidence, risk) => {
    const { verdict, evidence } = apply(reason, ...shifts)
    expect(verdict).toMatchObject({ confidence, risk })
    expect(evidence.signals).toHaveLength(shifts.length)
  })
})
