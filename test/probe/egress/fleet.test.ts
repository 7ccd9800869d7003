import { describe, expect, test } from 'vitest'
import { MINUTE } from '../../../src/base/clock.ts'
import { CatchAllMemory } from '../../../src/probe/catch-all.ts'
import { Fleet } from '../../../src/probe/egress/fleet.ts'
import { Prober } from '../../../src/probe/probe.ts'
import { createTestProber, REFUSAL, ROW } from '../../support/prober.ts'
import { knows } from '../../support/recipients.ts'

function fleet(names: readonly string[], allowed?: Record<string, readonly string[]>) {
  const { world, clock } = createTestProber(knows())
  const catchAll = new CatchAllMemory(clock)
  const probers = names.map(
    name => new Prober({ ...world, egress: { ...world.egress, name } }, () => ROW, catchAll),
  )
  return { clock, fleet: new Fleet(probers, operator => allowed?.[operator] ?? null) }
}

const OPERATORS = Array.from({ length: 3_000 }, (_, n) => `mail${n}.example`)

describe('who asks an operator', () => {
  test('is the same in every run', () => {
    const order = (operator: string) => fleet(['a', 'b', 'c']).fleet.inOrder(operator)
    for (const operator of OPERATORS.slice(0, 20)) expect(order(operator)).toEqual(order(operator))
    // As it was in the runs of earlier versions: greylists know us by it.
    expect(['google', 'outlook', 'mx.test'].map(operator => order(operator).join(''))).toEqual([
      'abc',
      'cba',
      'acb',
    ])
  })

  test('is each of several for its share of the operators', () => {
    const { fleet: three } = fleet(['a', 'b', 'c'])
    for (const name of three.names) {
      const first = OPERATORS.filter(operator => three.inOrder(operator)[0] === name).length
      const second = OPERATORS.filter(operator => three.inOrder(operator)[1] === name).length
      for (const share of [first, second]) {
        expect(share).toBeGreaterThan(900)
        expect(share).toBeLessThan(1_100)
      }
    }
  })

  test('stays who it is for those that a new egress does not take over', () => {
    const { fleet: two } = fleet(['a', 'b'])
    const { fleet: three } = fleet(['a', 'b', 'c'])
    const moved = OPERATORS.filter(
      operator => ![two.inOrder(operator)[0], 'c'].includes(three.inOrder(operator)[0]),
    )
    expect(moved).toEqual([])
  })

  test('is one of those that are allowed to; if none of them is there, one of all', () => {
    const { fleet: three } = fleet(['a', 'b', 'c'], { one: ['b'], two: ['c', 'a'], gone: ['z'] })
    expect(three.inOrder('one')).toEqual(['b'])
    expect(three.inOrder('two').toSorted()).toEqual(['a', 'c'])
    expect(three.inOrder('gone').toSorted()).toEqual(['a', 'b', 'c'])
  })

  test('is another while the first is refused, and the first again when that is over', async () => {
    const { fleet: three, clock } = fleet(['a', 'b', 'c'])
    const [first = '', second = '', third = ''] = three.inOrder('op')
    three.prober(first).pace('op').refused(REFUSAL)
    expect(three.willing('op')).toEqual([second, third])
    expect(three.firstFor('op')).toBe(second)
    expect(three.firstFor('other')).toBe(three.inOrder('other')[0])
    await clock.advance(31 * MINUTE)
    expect(three.firstFor('op')).toBe(first)
  })

  test('is the first where all are refused: somebody has to be told', () => {
    const { fleet: two } = fleet(['a', 'b'])
    for (const name of two.names) two.prober(name).pace('op').refused(REFUSAL)
    expect(two.willing('op')).toEqual([])
    expect(two.firstFor('op')).toBe(two.inOrder('op')[0])
  })
})

describe('an egress stands back', () => {
  test('where it is refused and another is not', () => {
    const { fleet: two } = fleet(['a', 'b'])
    expect(two.standsBack('a', 'op')).toBe(false)
    two.prober('a').pace('op').refused(REFUSAL)
    expect(two.standsBack('a', 'op')).toBe(true)
    expect(two.standsBack('b', 'op')).toBe(false)
    expect(two.standsBack('a', 'other')).toBe(false)
    two.prober('b').pace('op').refused(REFUSAL)
    expect(two.standsBack('a', 'op')).toBe(false)
  })

  test('for no one that may not ask this operator', () => {
    const { fleet: two } = fleet(['a', 'b'], { op: ['a'] })
    two.prober('a').pace('op').refused(REFUSAL)
    expect(two.standsBack('a', 'op')).toBe(false)
  })
})

describe('the egresses', () => {
  test('have each a pace of its own, and know together what a domain takes', () => {
    const { fleet: two } = fleet(['a', 'b'])
    expect(two.prober('a').pace('op')).not.toBe(two.prober('b').pace('op'))
    two.prober('a').catchAll.remember('a.test', true)
    expect(two.prober('b').catchAll.recall('a.test')).toBe(true)
  })

  test('are known by their names', () => {
    const { fleet: two } = fleet(['a', 'b'])
    expect(two.names).toEqual(['a', 'b'])
    expect(two.prober('b').egressName).toBe('b')
    expect(() => two.prober('c')).toThrow('There is no egress "c", only a, b.')
  })

  test('of which there is one ask everybody', () => {
    const { fleet: one } = fleet(['a'], { op: ['z'] })
    one.prober('a').pace('op').refused(REFUSAL)
    expect(one.inOrder('op')).toEqual(['a'])
    expect(one.firstFor('op')).toBe('a')
    expect(one.standsBack('a', 'op')).toBe(false)
  })
})
