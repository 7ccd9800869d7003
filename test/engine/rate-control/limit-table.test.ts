import { describe, expect, test } from 'vitest'
import {
  createLimits,
  destinationLimitsFor,
  limitsFor,
  type RateLimitOverrides,
} from '../../../src/engine/rate-control/limit-table.ts'

const NONE: RateLimitOverrides = {
  sessionsPerOperator: null,
  recipientsPerSession: null,
  sessionsPerSecond: null,
}
const OPERATORS = [
  'google',
  'outlook',
  'microsoft-365',
  'yahoo',
  'yahoo-japan',
  'icloud',
  'barracuda',
  'gmx',
  'orange',
  'tencent',
  'netease',
  'kpn',
  'netvigator',
  'godaddy',
  'titan',
  'mxroute',
  'somebody.test',
]

describe('the limits of an operator', () => {
  test('outside the table are two connections, one per second, with twenty recipients', () => {
    expect(limitsFor('somebody.test', NONE)).toEqual({
      sessionsMax: 2,
      recipientsPerSession: 20,
      recipientsPerTransaction: 20,
      sessionsPerSecond: 1,
      unknownStreakMax: 20,
    })
  })

  test.each(OPERATORS)('of %s are consistent', operator => {
    const row = limitsFor(operator, NONE)
    for (const value of Object.values(row)) expect(value).toBeGreaterThan(0)
    expect(row.recipientsPerTransaction).toBeLessThanOrEqual(row.recipientsPerSession)
    expect(row.recipientsPerTransaction).toBeLessThanOrEqual(100)
    // A name that is not in the table must not find a row.
    expect(Object.keys(row)).toHaveLength(5)
  })

  test.each(OPERATORS.slice(0, -1))('of %s are others than those outside the table', operator => {
    expect(limitsFor(operator, NONE)).not.toEqual(limitsFor('somebody.test', NONE))
  })

  test.each(['outlook', 'microsoft-365'])(
    'of %s are one recipient per transaction, whatever the settings',
    operator => {
      expect(
        limitsFor(operator, { ...NONE, recipientsPerSession: 50 }).recipientsPerTransaction,
      ).toBe(1)
    },
  )

  test.each(['godaddy', 'titan', 'mxroute'])(
    'of %s are low, because it counts unknown users',
    operator => {
      expect(limitsFor(operator, NONE)).toMatchObject({
        sessionsMax: 1,
        recipientsPerSession: 5,
        unknownStreakMax: 3,
      })
    },
  )

  test.each(['toString', '__proto__', 'constructor'])(
    'of a domain named %s are the default',
    name => {
      expect(limitsFor(name, NONE)).toEqual(limitsFor('somebody.test', NONE))
    },
  )
})

describe('settings', () => {
  test('override every row', () => {
    const overrides = { sessionsPerOperator: 7, recipientsPerSession: 9, sessionsPerSecond: 0.5 }
    for (const operator of OPERATORS) {
      expect(limitsFor(operator, overrides)).toMatchObject({
        sessionsMax: 7,
        recipientsPerSession: 9,
        sessionsPerSecond: 0.5,
      })
    }
  })

  test('for one operator override those for all, each separately', () => {
    const all = { sessionsPerOperator: 7, recipientsPerSession: 9, sessionsPerSecond: 0.5 }
    expect(limitsFor('google', all, { ...NONE, sessionsPerOperator: 2 })).toMatchObject({
      sessionsMax: 2,
      recipientsPerSession: 9,
      recipientsPerTransaction: 9,
      sessionsPerSecond: 0.5,
    })
    expect(limitsFor('google', all, { ...NONE, recipientsPerSession: 3 })).toMatchObject({
      sessionsMax: 7,
      recipientsPerSession: 3,
      recipientsPerTransaction: 3,
    })
    expect(limitsFor('outlook', NONE, { ...NONE, recipientsPerSession: 3 })).toMatchObject({
      recipientsPerTransaction: 1,
    })
  })

  test('never allow more than the 100 recipients of RFC 5321 per transaction', () => {
    expect(limitsFor('google', { ...NONE, recipientsPerSession: 500 })).toMatchObject({
      recipientsPerSession: 500,
      recipientsPerTransaction: 100,
    })
  })
})

describe('the limits of an address and of a network', () => {
  const UNSET = {
    ...NONE,
    sessionsPerAddress: null,
    sessionsPerSecondPerAddress: null,
    sessionsPerNetwork: null,
    sessionsPerSecondPerNetwork: null,
  }

  test('are those of an operator outside the table, and a hundred times as much', () => {
    expect(destinationLimitsFor(UNSET)).toEqual({
      address: { sessionsMax: 2, sessionsPerSecond: 1 },
      network: { sessionsMax: 200, sessionsPerSecond: 100 },
    })
  })

  test('follow the settings of operators', () => {
    expect(
      destinationLimitsFor({ ...UNSET, sessionsPerOperator: 7, sessionsPerSecond: 0.5 }),
    ).toEqual({
      address: { sessionsMax: 7, sessionsPerSecond: 0.5 },
      network: { sessionsMax: 700, sessionsPerSecond: 50 },
    })
  })

  test('have settings of their own, each separately', () => {
    const own = { ...UNSET, sessionsPerAddress: 3, sessionsPerSecondPerAddress: 4 }
    expect(destinationLimitsFor(own)).toEqual({
      address: { sessionsMax: 3, sessionsPerSecond: 4 },
      network: { sessionsMax: 300, sessionsPerSecond: 400 },
    })
    expect(
      destinationLimitsFor({ ...own, sessionsPerNetwork: 5, sessionsPerSecondPerNetwork: 6 })
        .network,
    ).toEqual({ sessionsMax: 5, sessionsPerSecond: 6 })
  })
})

test('operators without limits of their own share one object', () => {
  const own = { ...NONE, sessionsPerOperator: 4 }
  const limits = createLimits(NONE, operator => (operator === 'own.test' ? own : undefined))
  expect(limits('a.test')).toBe(limits('b.test'))
  expect(limits('a.test')).toEqual(limitsFor('a.test', NONE))
  expect(limits('google')).toEqual(limitsFor('google', NONE))
  expect(limits('own.test')).toEqual(limitsFor('own.test', NONE, own))
})
