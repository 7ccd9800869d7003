import { describe, expect, test } from 'vitest'
import { CatchAllCache } from '../../../src/engine/probe/catch-all.ts'
import { EgressPool } from '../../../src/engine/probe/egress-pool.ts'
import { EgressProber } from '../../../src/engine/probe/egress-prober.ts'
import { MINUTE } from '../../../src/platform/clock.ts'
import { createTestProber, REFUSAL, ROW } from '../../support/prober.ts'
import { knows } from '../../support/recipients.ts'

function egressPool(names: readonly string[], allowed?: Record<string, readonly string[]>) {
  const { world, clock } = createTestProber(knows())
  const catchAll = new CatchAllCache(clock)
  const probers = names.map(
    name => new EgressProber({ ...world, egress: { ...world.egress, name } }, () => ROW, catchAll),
  )
  return { clock, fleet: new EgressPool(probers, operator => allowed?.[operator] ?? null) }
}

const OPERATORS = Array.from({ length: 3_000 }, (_, n) => `mail${n}.example`)

describe('the primary egress of an operator', () => {
  test('is the same in every run', () => {
    const order = (operator: string) => egressPool(['a', 'b', 'c']).fleet.ranked(operator)
    for (const operator of OPERATORS.slice(0, 20)) expect(order(operator)).toEqual(order(operator))
    // The same as in earlier versions, because greylists store the identity.
    expect(['google', 'outlook', 'mx.test'].map(operator => order(operator).join(''))).toEqual([
      'abc',
      'cba',
      'acb',
    ])
  })

  test('spreads operators evenly', () => {
    const { fleet: three } = egressPool(['a', 'b', 'c'])
    for (const name of three.names) {
      const first = OPERATORS.filter(operator => three.ranked(operator)[0] === name).length
      const second = OPERATORS.filter(operator => three.ranked(operator)[1] === name).length
      for (const share of [first, second]) {
        expect(share).toBeGreaterThan(900)
        expect(share).toBeLessThan(1_100)
      }
    }
  })

  test('stays the same for operators that a new egress does not take over', () => {
    const { fleet: two } = egressPool(['a', 'b'])
    const { fleet: three } = egressPool(['a', 'b', 'c'])
    const moved = OPERATORS.filter(
      operator => ![two.ranked(operator)[0], 'c'].includes(three.ranked(operator)[0]),
    )
    expect(moved).toEqual([])
  })

  test('is one of the allowed egresses, or any if none of them exists', () => {
    const { fleet: three } = egressPool(['a', 'b', 'c'], {
      one: ['b'],
      two: ['c', 'a'],
      gone: ['z'],
    })
    expect(three.ranked('one')).toEqual(['b'])
    expect(three.ranked('two').toSorted()).toEqual(['a', 'c'])
    expect(three.ranked('gone').toSorted()).toEqual(['a', 'b', 'c'])
  })

  test('is another one while the first is blocked', async () => {
    const { fleet: three, clock } = egressPool(['a', 'b', 'c'])
    const [first = '', second = '', third = ''] = three.ranked('op')
    three.prober(first).rateController('op').refused(REFUSAL)
    expect(three.availableFor('op')).toEqual([second, third])
    expect(three.primaryFor('op')).toBe(second)
    expect(three.primaryFor('other')).toBe(three.ranked('other')[0])
    await clock.advance(31 * MINUTE)
    expect(three.primaryFor('op')).toBe(first)
  })

  test('is the first one if all are blocked', () => {
    const { fleet: two } = egressPool(['a', 'b'])
    for (const name of two.names) two.prober(name).rateController('op').refused(REFUSAL)
    expect(two.availableFor('op')).toEqual([])
    expect(two.primaryFor('op')).toBe(two.ranked('op')[0])
  })
})

describe('an egress is deprioritized', () => {
  test('if it is blocked and another is not', () => {
    const { fleet: two } = egressPool(['a', 'b'])
    expect(two.isDeprioritised('a', 'op')).toBe(false)
    two.prober('a').rateController('op').refused(REFUSAL)
    expect(two.isDeprioritised('a', 'op')).toBe(true)
    expect(two.isDeprioritised('b', 'op')).toBe(false)
    expect(two.isDeprioritised('a', 'other')).toBe(false)
    two.prober('b').rateController('op').refused(REFUSAL)
    expect(two.isDeprioritised('a', 'op')).toBe(false)
  })

  test('but not in favor of an egress that may not probe the operator', () => {
    const { fleet: two } = egressPool(['a', 'b'], { op: ['a'] })
    two.prober('a').rateController('op').refused(REFUSAL)
    expect(two.isDeprioritised('a', 'op')).toBe(false)
  })
})

describe('the egresses', () => {
  test('have separate rate limits and a common catch-all cache', () => {
    const { fleet: two } = egressPool(['a', 'b'])
    expect(two.prober('a').rateController('op')).not.toBe(two.prober('b').rateController('op'))
    two.prober('a').catchAll.set('a.test', true)
    expect(two.prober('b').catchAll.get('a.test')).toBe(true)
  })

  test('are found by name', () => {
    const { fleet: two } = egressPool(['a', 'b'])
    expect(two.names).toEqual(['a', 'b'])
    expect(two.prober('b').egressName).toBe('b')
    expect(() => two.prober('c')).toThrow('There is no egress "c", only a, b.')
  })

  test('probe every operator if there is only one', () => {
    const { fleet: one } = egressPool(['a'], { op: ['z'] })
    one.prober('a').rateController('op').refused(REFUSAL)
    expect(one.ranked('op')).toEqual(['a'])
    expect(one.primaryFor('op')).toBe('a')
    expect(one.isDeprioritised('a', 'op')).toBe(false)
  })
})
