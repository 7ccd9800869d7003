import { describe, expect, test } from 'vitest'
import type { ActionCase } from '../../src/engine/verdict/action.ts'
import { PERIOD_MS } from '../../src/feedback/address-state.ts'
import { BOUNCE_RATES } from '../../src/feedback/bounce-rates.ts'
import { buildBounceModel } from '../../src/feedback/calibration-model.ts'
import type { VerdictCount } from '../../src/feedback/feedback-counts.ts'
import { projectBounces, projectList, ResultCounter } from '../../src/feedback/projection.ts'
import { DAY } from '../../src/platform/clock.ts'

const NOW = 100 * PERIOD_MS + DAY

type Row = readonly [which: ActionCase, count: number, operator?: string]

function countRows(rows: readonly Row[]) {
  const counter = new ResultCounter()
  for (const [which, count, operator = 'google'] of rows) counter.add(which, operator, count)
  return counter.groups()
}

/** Outcomes of verdicts that an account reported. */
const reported = (
  reason: string,
  { correct, wrong, operator = 'google' }: { correct: number; wrong: number; operator?: string },
): VerdictCount => ({ period: 100 * PERIOD_MS, reason, operator, confidence: 95, correct, wrong })

const project = (rows: readonly Row[], counts: readonly VerdictCount[] | null = null) =>
  projectList(countRows(rows), {
    policy: 'balanced',
    model: counts === null ? null : buildBounceModel(counts, NOW),
  })

test('without reports, the rates are those of the table', () => {
  const { before, after, reports } = project([
    ['accepted_email', 900],
    ['rejected_email', 100],
  ])
  expect(before.addresses).toBe(1_000)
  expect(before.rate).toBeCloseTo(0.9 * 0.02 + 0.1 * 0.97, 6)
  expect(after).toMatchObject({ addresses: 900, rate: BOUNCE_RATES.accepted_email.rate })
  expect(reports).toBe(0)
})

test('the rate is in its interval, which is in 0 to 1', () => {
  for (const which of Object.keys(BOUNCE_RATES) as ActionCase[]) {
    for (const count of [1, 100, 100_000]) {
      const { rate, rateMin, rateMax } = projectBounces(countRows([[which, count]]), null)
      expect([0, rateMin, rate, rateMax, 1]).toEqual(
        [0, rateMin, rate, rateMax, 1].toSorted((a, b) => a - b),
      )
    }
  }
})

describe('own reports', () => {
  const LIST: readonly Row[] = [['accepted_email', 1_000]]

  test('outweigh the table when there are many of them, and narrow the interval', () => {
    const few = project(LIST, [reported('accepted_email', { correct: 9, wrong: 1 })])
    const many = project(LIST, [reported('accepted_email', { correct: 9_000, wrong: 1_000 })])
    expect(few.after.rate).toBeLessThan(0.06)
    expect(many.after.rate).toBeCloseTo(0.1, 2)
    expect(many.reports).toBe(10_000)
    const width = ({ after }: typeof many) => after.rateMax - after.rateMin
    expect(width(many)).toBeLessThan(width(few))
  })

  test('count as bounces where a verdict of a rejection was right', () => {
    const counts = [reported('rejected_email', { correct: 9_000, wrong: 1_000 })]
    expect(project([['rejected_email', 10]], counts).before.rate).toBeCloseTo(0.9, 2)
  })

  test('of one operator say more about it than about another', () => {
    const counts = [
      reported('accepted_email', { correct: 2_000, wrong: 0 }),
      reported('accepted_email', { correct: 1_200, wrong: 800, operator: 'bad' }),
    ]
    const good = project([['accepted_email', 100, 'google']], counts)
    const bad = project([['accepted_email', 100, 'bad']], counts)
    expect(good.after.rate).toBeLessThan(0.05)
    expect(bad.after.rate).toBeGreaterThan(0.3)
  })
})

describe('mail after the actions', () => {
  test('goes to addresses to send to, also with care, and to no others', () => {
    const { actions, before, after } = project([
      ['accepted_email', 5],
      ['catch_all', 4],
      ['timeout', 3],
      ['rejected_email', 2],
    ])
    expect(actions).toEqual({ send: 5, send_with_care: 4, retry_later: 3, suppress: 2 })
    expect([before.addresses, after.addresses]).toEqual([14, 9])
  })

  test('is nothing if nothing is left', () => {
    expect(project([['rejected_email', 2]]).after).toEqual({
      addresses: 0,
      rate: 0,
      rateMin: 0,
      rateMax: 0,
    })
  })

  test('never goes to a row without an address, and neither does mail to all', () => {
    expect(project([['no_address', 7]]).before.addresses).toBe(0)
  })
})

test('many small operators are more certain than one large, and are counted together', () => {
  const rows = Array.from({ length: 500 }, (_, n): Row => ['catch_all', 2, `host${n}`])
  const groups = countRows(rows)
  expect(groups.length).toBe(201)
  expect(groups.reduce((sum, { count }) => sum + count, 0)).toBe(1_000)
  expect(groups.at(-1)).toEqual({ which: 'catch_all', operator: null, count: 600, squares: 1_200 })
  const many = projectBounces(groups, null)
  const one = projectBounces(countRows([['catch_all', 1_000]]), null)
  expect(many.rate).toBeCloseTo(one.rate, 6)
  expect(many.rateMax).toBeLessThan(one.rateMax)
})
