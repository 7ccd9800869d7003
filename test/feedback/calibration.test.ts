import { describe, expect, test } from 'vitest'
import { PERIOD_MS } from '../../src/feedback/address-state.ts'
import { averageByLikelihood, logGamma } from '../../src/feedback/beta-binomial.ts'
import { calibrate, wilsonInterval } from '../../src/feedback/calibration.ts'
import { buildModel } from '../../src/feedback/calibration-model.ts'
import type { CatchAllCount, VerdictCount } from '../../src/feedback/feedback-counts.ts'
import { buildReport } from '../../src/feedback/report.ts'
import { DAY } from '../../src/platform/clock.ts'

const NOW = 100 * 30 * DAY

const counts = (correct: number, wrong: number, o: Partial<VerdictCount> = {}): VerdictCount => ({
  period: NOW,
  reason: 'accepted_email',
  operator: '',
  confidence: 95,
  correct,
  wrong,
  ...o,
})

const measure = (all: VerdictCount[], operator: string | null = null) =>
  calibrate(buildModel(all, [], NOW), {
    reason: 'accepted_email',
    operator,
    fixed: 95,
    deliverable: true,
    domain: null,
  })

describe('confidence', () => {
  test('is not measured without verdicts', () => {
    expect(measure([])).toBeNull()
    expect(measure([counts(5, 5, { reason: 'catch_all' })])).toBeNull()
  })

  test('is the share of correct verdicts, shrunk towards the fixed figure', () => {
    const few = measure([counts(0, 1)])
    expect(few?.reason).toMatchObject({ correct: 0, total: 1, halfLifeDays: 90 })
    const weight = few?.reason.priorWeight ?? 0
    expect(few?.confidence).toBe(Math.round((95 * weight) / (1 + weight)))
    expect(measure([counts(8_000, 2_000)])?.confidence).toBe(80)
  })

  test('of an operator is shrunk towards its reason', () => {
    const all = [
      counts(950, 50, { operator: 'Google' }),
      counts(0, 400, { operator: 'Yahoo' }),
      counts(0, 1, { operator: 'small' }),
    ]
    expect(measure(all, 'Yahoo')).toMatchObject({
      confidence: 0,
      operator: { correct: 0, total: 400 },
      reason: { correct: 950, total: 1_401 },
    })
    expect(measure(all, 'Google')?.confidence).toBe(95)
    expect(measure(all, 'small')?.confidence).toBeGreaterThan(15)
    expect(measure(all, 'other')).toMatchObject({ operator: null, confidence: 68 })
  })

  test('gives a new operator the more of its reason, the more alike the operators are', () => {
    const shares = (all: number[]) =>
      all.map((share, index) => counts(share, 100 - share, { operator: `operator${index}` }))
    const fresh = counts(0, 5, { operator: 'new' })
    const alike = measure([...shares([80, 81, 79, 80, 80]), fresh], 'new')
    const unlike = measure([...shares([100, 60, 95, 30, 99]), fresh], 'new')
    expect(alike?.operator?.priorWeight).toBeGreaterThan(10)
    expect(unlike?.operator?.priorWeight).toBeLessThan(8)
    expect(alike?.confidence).toBeGreaterThan(60)
    expect(unlike?.confidence).toBeLessThan(45)
  })

  test('forgets fast where outcomes change, and slowly where they do not', () => {
    const year = Array.from({ length: 12 }, (_, index) => NOW - index * PERIOD_MS)
    const steady = measure(year.map(period => counts(90, 10, { period })))
    const changed = measure(
      year.map((period, index) =>
        index < 2 ? counts(20, 80, { period }) : counts(95, 5, { period }),
      ),
    )
    expect(steady?.reason.halfLifeDays).toBeGreaterThan(180)
    expect(steady?.confidence).toBe(90)
    expect(changed?.reason.halfLifeDays).toBeLessThan(40)
    expect(changed?.confidence).toBeLessThan(40)
  })

  describe('follows a trend', () => {
    const PERIODS = 12
    const drift = (change: number, size = 1_000) =>
      Array.from({ length: PERIODS }, (_, index) => {
        const correct = Math.round(size * (0.8 + change * ((index + 0.5) / PERIODS - 0.5)))
        return counts(correct, size - correct, { period: NOW - (PERIODS - index) * PERIOD_MS })
      })

    test.each([
      ['falls', -0.3, 65],
      ['rises', 0.3, 95],
    ])('to where it leads: a share that %s', (_, change, confidence) => {
      const measured = measure(drift(change))
      expect(measured?.confidence).toBeGreaterThanOrEqual(confidence - 1)
      expect(measured?.confidence).toBeLessThanOrEqual(confidence + 1)
      expect(Math.sign(measured?.reason.trend ?? 0)).toBe(Math.sign(change))
    })

    test('never beyond 0 and 100', () => {
      const steep = drift(0.39).map(count => {
        const correct = Math.min(1_000, count.correct + 10)
        return { ...count, correct, wrong: 1_000 - correct }
      })
      const { correct = 0, total = 0 } = measure(steep)?.reason ?? {}
      expect(correct).toBeLessThanOrEqual(total)
      expect(measure(steep)?.confidence).toBeGreaterThanOrEqual(98)
    })

    test('only as far as the counts show one', () => {
      expect(Math.abs(measure(drift(0))?.reason.trend ?? 1)).toBeLessThan(0.001)
      const [clear, faint] = [drift(-0.3), drift(-0.3, 5)].map(
        all => measure(all)?.reason.trend ?? 0,
      )
      expect(clear).toBeLessThan(-0.05)
      expect(Math.abs(faint ?? 1)).toBeLessThan(0.05)
    })

    test('less than an earlier change that is over', () => {
      const over = Array.from({ length: PERIODS }, (_, index) =>
        counts(index < 6 ? 950 : 600, index < 6 ? 50 : 400, {
          period: NOW - (PERIODS - index) * PERIOD_MS,
        }),
      )
      expect(measure(over)?.confidence).toBeGreaterThanOrEqual(57)
      expect(measure(over)?.confidence).toBeLessThanOrEqual(61)
    })

    test('of the other sign for a deliverable verdict of a catch-all domain', () => {
      const falling = drift(-0.3).map(count => ({ ...count, reason: 'catch_all' }))
      const model = buildModel(falling, [], NOW)
      const verdict = { reason: 'catch_all', operator: null, fixed: 50, domain: null }
      const [dead, alive] = [false, true].map(deliverable =>
        calibrate(model, { ...verdict, deliverable }),
      )
      expect(dead?.reason.trend).toBeLessThan(-0.05)
      expect(alive?.reason.trend).toBe(-(dead?.reason.trend ?? 0))
    })
  })

  test('has a half-life of 90 days where nothing is known about changes', () => {
    const old = counts(0, 100, { period: NOW - PERIOD_MS - 90 * DAY })
    expect(measure([old])?.reason).toMatchObject({ correct: 0, total: 50 })
    expect(measure([counts(0, 1e6, { period: NOW - 90 * 20 * DAY })])).toBeNull()
  })

  test('survives counts that a correction of an earlier period made negative', () => {
    const measured = measure([
      counts(40, 0, { period: NOW - PERIOD_MS }),
      counts(-2, 0),
      counts(0, 0, { operator: 'Google' }),
    ])
    expect(measured?.reason).toMatchObject({ halfLifeDays: expect.any(Number) })
    expect(measured?.confidence).toBeGreaterThan(90)
  })
})

describe('the confidence of a catch-all domain', () => {
  const verdicts = [
    counts(30, 70, { reason: 'catch_all', operator: 'own' }),
    // Of deliverable verdicts, the wrong ones bounced.
    counts(60, 40, { reason: 'catch_all/low', operator: 'own' }),
  ]
  const domainsOf = (all: [alive: number, dead: number][]): CatchAllCount[] =>
    all.map(([alive, dead]) => ({ operator: 'own', alive, dead, domains: 6 }))
  const measureDomain = (
    domains: CatchAllCount[],
    { alive, dead, deliverable = false }: { alive: number; dead: number; deliverable?: boolean },
  ) =>
    calibrate(buildModel(verdicts, domains, NOW), {
      reason: 'catch_all',
      operator: 'own',
      fixed: 50,
      deliverable,
      domain: { domain: 'example.com', alive, dead },
    })

  test('is shrunk towards its operator, more if the domains are alike', () => {
    const alike = domainsOf([
      [13, 7],
      [14, 6],
      [12, 8],
    ])
    const unlike = domainsOf([
      [20, 0],
      [1, 19],
      [19, 1],
    ])
    expect(measureDomain(alike, { alive: 5, dead: 0 })?.confidence).toBeGreaterThan(30)
    expect(measureDomain(unlike, { alive: 5, dead: 0 })?.confidence).toBeLessThan(15)
  })

  test('is the share of deliveries for a deliverable verdict', () => {
    const bounced = measureDomain([], { alive: 90, dead: 10 })
    const arrived = measureDomain([], { alive: 90, dead: 10, deliverable: true })
    expect(bounced?.domain).toMatchObject({ correct: 10, total: 100, halfLifeDays: null })
    expect(arrived?.domain).toMatchObject({ correct: 90, total: 100 })
    expect((bounced?.confidence ?? 0) + (arrived?.confidence ?? 0)).toBe(100)
  })

  test('counts the reports about the domain once', () => {
    const measured = measureDomain([], { alive: 70, dead: 30 })
    // Of the 200 verdicts of the operator, 70 of which bounced, 100 are of the domain.
    expect(measured?.operator).toMatchObject({ correct: 40, total: 100 })
  })
})

test.each([
  [0.5, Math.log(Math.sqrt(Math.PI))],
  [1, 0],
  [5, Math.log(24)],
  [101, 363.739375555563],
])('the logarithm of the gamma function of %f is %f', (x, expected) => {
  expect(logGamma(x)).toBeCloseTo(expected, 8)
})

test('without observations the average of candidates is their middle', () => {
  expect(averageByLikelihood([1, 10, 100], [0, 0, 0])).toBeCloseTo(10)
  expect(averageByLikelihood([1, 10, 100], [-1e6, -1e6, 0])).toBeCloseTo(100)
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

  test('has a bin for each range of confidence with verdicts, lowest first', () => {
    const { bins, fixedBins } = buildReport([
      counts(9, 1, { confidence: 90 }),
      counts(40, 0, { confidence: 100 }),
      counts(20, 80, { confidence: 31, reason: 'catch_all' }),
    ])
    expect(bins).toEqual([
      { count: 100, predicted: 0.31, observed: 0.2 },
      { count: 50, predicted: expect.closeTo(0.98), observed: 0.98 },
    ])
    expect(fixedBins.map(({ count, predicted }) => [count, predicted])).toEqual([
      [100, 0.5],
      [50, 0.95],
    ])
  })

  test('says which bounces verdicts predicted, and which deliveries they would have lost', () => {
    const { outcomes } = buildReport([
      counts(90, 10),
      counts(30, 2, { reason: 'catch_all/low' }),
      counts(50, 20, { reason: 'catch_all/medium' }),
      counts(40, 1, { reason: 'rejected_email' }),
    ])
    expect(outcomes).toEqual({
      predictedBounces: 90,
      missedBounces: 12,
      keptDeliveries: 120,
      lostDeliveries: 21,
    })
  })

  test('is empty without verdicts', () => {
    const none = { count: 0, predicted: 0, observed: 0, brierScore: 0, calibrationError: 0 }
    expect(buildReport([])).toEqual({
      total: none,
      fixed: none,
      reasons: [],
      operators: [],
      bins: [],
      fixedBins: [],
      outcomes: { predictedBounces: 0, missedBounces: 0, keptDeliveries: 0, lostDeliveries: 0 },
    })
  })
})
