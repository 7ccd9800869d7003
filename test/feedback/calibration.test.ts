import { describe, expect, test } from 'vitest'
import {
  buildModel,
  calibrate,
  OPERATOR_TOTAL_MIN,
  PRIOR_WEIGHT,
  wilsonInterval,
} from '../../src/feedback/calibration.ts'
import type { VerdictCount } from '../../src/feedback/feedback-store.ts'
import { PERIOD_MS } from '../../src/feedback/record-feedback.ts'
import { buildReport } from '../../src/feedback/report.ts'
import { DAY } from '../../src/platform/clock.ts'

const NOW = 100 * 30 * DAY

const counts = (correct: number, wrong: number, o: Partial<VerdictCount> = {}): VerdictCount => ({
  ...{ period: NOW, reason: 'accepted_email', operator: '', confidence: 95, correct, wrong },
  ...o,
})

const measure = (all: VerdictCount[], operator: string | null = null) =>
  calibrate(buildModel(all, NOW), { reason: 'accepted_email', operator, fixed: 95 })

describe('confidence', () => {
  test('is not measured without verdicts', () => {
    expect(measure([])).toBeNull()
    expect(measure([counts(5, 5, { reason: 'catch_all' })])).toBeNull()
  })

  test('is the share of correct verdicts, shrunk towards the fixed figure', () => {
    const share = (80 + PRIOR_WEIGHT * 0.95) / (100 + PRIOR_WEIGHT)
    expect(measure([counts(80, 20)])).toEqual({
      ...{ confidence: Math.round(100 * share), fixed: 95, operator: null },
      reason: { correct: 80, total: 100 },
    })
    expect(measure([counts(0, 1)])?.confidence).toBe(86)
    expect(measure([counts(8_000, 2_000)])?.confidence).toBe(80)
  })

  test('of an operator needs enough verdicts, and is shrunk towards its reason', () => {
    const rest = counts(950, 50, { operator: 'Google' })
    const few = counts(0, OPERATOR_TOTAL_MIN - 1, { operator: 'Yahoo' })
    expect(measure([rest, few], 'Yahoo')?.operator).toBeNull()
    const enough = counts(0, 400, { operator: 'Yahoo' })
    const measured = measure([rest, enough], 'Yahoo')
    expect(measured?.operator).toEqual({ correct: 0, total: 400 })
    expect(measured?.confidence).toBe(2)
    expect(measure([rest, enough], 'Google')?.confidence).toBe(95)
  })

  test('forgets: a period that ended 90 days ago has half its weight', () => {
    const old = counts(0, 100, { period: NOW - PERIOD_MS - 90 * DAY })
    expect(measure([old])?.reason).toEqual({ correct: 0, total: 50 })
    expect(measure([counts(0, 1e6, { period: NOW - 90 * 20 * DAY })])).toBeNull()
  })
})

test.each([
  [0, 0, 0, 1],
  [0, 10, 0, 0.278],
  [5, 10, 0.237, 0.763],
  [10, 10, 0.722, 1],
  [50, 1_000, 0.038, 0.065],
])('the Wilson interval of %i of %i is %f to %f', (successes, total, low, high) => {
  const interval = wilsonInterval(successes, total)
  expect(interval.low).toBeCloseTo(low, 3)
  expect(interval.high).toBeCloseTo(high, 3)
})

describe('the report', () => {
  test('has counts, confidence, share, Brier score and calibration error', () => {
    const { total, fixed, reasons, operators } = buildReport([
      counts(90, 10, { confidence: 90, operator: 'Google' }),
      counts(20, 80, { confidence: 60, reason: 'catch_all' }),
    ])
    expect(total.count).toBe(200)
    expect(total.predicted).toBeCloseTo(0.75)
    expect(total.observed).toBeCloseTo(0.55)
    expect(total.brierScore).toBeCloseTo((90 * 0.01 + 10 * 0.81 + 20 * 0.16 + 80 * 0.36) / 200)
    expect(total.calibrationError).toBeCloseTo((0 + 0.4) / 2)
    expect(fixed.calibrationError).toBeCloseTo((0.05 + 0.3) / 2)
    expect(reasons.map(({ reason, calibrationError }) => [reason, calibrationError])).toEqual([
      ['accepted_email', 0],
      ['catch_all', expect.closeTo(0.4)],
    ])
    expect(operators.map(({ operator }) => operator)).toEqual(['Google', ''])
  })

  test('is empty without verdicts', () => {
    const none = { count: 0, predicted: 0, observed: 0, brierScore: 0, calibrationError: 0 }
    expect(buildReport([])).toEqual({ total: none, fixed: none, reasons: [], operators: [] })
  })
})
