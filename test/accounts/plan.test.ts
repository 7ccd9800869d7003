import { describe, expect, test } from 'vitest'
import { creditsFor, reachedThresholds } from '../../src/accounts/credits/credit-rules.ts'
import { findPlan, mergePlans, PLANS, periodEnd, periodStart } from '../../src/accounts/plan.ts'
import { resultOf } from '../support/result.ts'

describe('the plans', () => {
  test('are the built-in ones without a config file', () => {
    expect([...mergePlans({}).values()]).toEqual(PLANS)
  })

  test('keep fields that the config file omits', () => {
    const plans = mergePlans({ free: { creditsPerDay: 250 } })
    expect(plans.get('free')).toEqual({
      ...PLANS[0],
      creditsPerDay: 250,
    })
    expect(plans.get('starter')).toBe(PLANS[1])
  })

  test('can have other names, with a minute and no limits by default', () => {
    expect(mergePlans({ tiny: { requests: 3 } }).get('tiny')).toEqual({
      name: 'tiny',
      requests: 3,
      perMs: 60_000,
      creditsPerDay: null,
      concurrentJobs: null,
      storedRows: null,
      storedFeedback: null,
      keys: null,
    })
  })

  test('report which one has no request limit', () => {
    expect(() => mergePlans({ tiny: { creditsPerDay: 5 } })).toThrow(
      'The plan "tiny" has no request limit. Set "requests"',
    )
  })

  test('fall back to the smallest one, as configured, for an account with an unknown plan', () => {
    const plans = mergePlans({ free: { creditsPerDay: 7 } })
    expect(findPlan(plans, 'gone')).toBe(plans.get('free'))
    expect(findPlan(plans, 'starter')).toBe(plans.get('starter'))
  })
})

test('credits are counted by UTC day', () => {
  const noon = Date.UTC(2026, 5, 1, 12, 34, 56)
  expect(periodStart(noon)).toBe(Date.UTC(2026, 5, 1))
  expect(periodEnd(noon)).toBe(Date.UTC(2026, 5, 2))
  expect(periodStart(periodEnd(noon))).toBe(periodEnd(noon))
})

describe('the thresholds', () => {
  test.each([
    [79, 0, []],
    [80, 0, [80]],
    [94, 80, []],
    [95, 80, [95]],
    [99, 95, []],
    [100, 95, [100]],
    [101, 100, []],
    [100, 0, [80, 95, 100]],
  ])('at %d of 100 used, after %d: %j', (used, warned, reached) => {
    expect(reachedThresholds({ limit: 100, used, warned })).toEqual(reached)
  })

  test('are not reached early, however small the plan', () => {
    expect(reachedThresholds({ limit: 3, used: 2, warned: 0 })).toEqual([])
    expect(reachedThresholds({ limit: 3, used: 3, warned: 0 })).toEqual([80, 95, 100])
  })
})

describe('a result costs', () => {
  test.each([
    [1, 'deliverable', resultOf('accepted_email')],
    [1, 'risky', resultOf('catch_all')],
    [1, 'undeliverable', resultOf('rejected_email')],
    [1, 'a domain that does not exist', resultOf('invalid_domain')],
    [0, 'unknown', resultOf('timeout')],
    [0, 'an internal error', resultOf('unexpected_error')],
    [0, 'a syntax error', resultOf('invalid_email')],
    [0, 'a cached result', resultOf('accepted_email', { cached: true })],
  ])('%d: %s', (credits, _, result) => {
    expect(creditsFor(result)).toBe(credits)
  })
})
