import { expect, test } from 'vitest'
import { EgressPool } from '../../../src/engine/probe/egress-pool.ts'
import { EgressProber } from '../../../src/engine/probe/egress-prober.ts'
import type { RateKey, SharedRateState } from '../../../src/engine/rate-control/shared-state.ts'
import { MINUTE } from '../../../src/platform/clock.ts'
import { createTestProber, REFUSAL, ROW } from '../../support/prober.ts'
import { knows } from '../../support/recipients.ts'
import { fakeSharedRates } from '../../support/shared-rate-state.ts'

const OPERATORS = Array.from({ length: 300 }, (_, n) => `mail${n}.example`)

/** One process per egress, and the set of live ones. */
function cluster(names: readonly string[], allowed: Record<string, readonly string[]> = {}) {
  const { world, clock } = createTestProber(knows())
  const share = fakeSharedRates(clock)
  const alive = { names }
  const fleetOf = (name: string, paces: SharedRateState = share) => {
    const own = { ...world, egress: { ...world.egress, name } }
    const prober = new EgressProber(own, () => ROW, undefined, paces)
    const others = {
      names: () => alive.names,
      isRefused: (key: RateKey) => paces.refusal(key) !== null,
    }
    return new EgressPool([prober], operator => allowed[operator] ?? null, others)
  }
  return { clock, share, alive, fleets: names.map(name => fleetOf(name)) }
}

test('processes with one egress each agree on the egress for an operator', () => {
  const { fleets } = cluster(['a', 'b', 'c'])
  const [one, two, three] = fleets as [EgressPool, EgressPool, EgressPool]
  for (const operator of OPERATORS) {
    expect(two.ranked(operator)).toEqual(one.ranked(operator))
    expect(three.primaryFor(operator)).toBe(one.primaryFor(operator))
  }
  const firsts = new Set(OPERATORS.map(operator => one.primaryFor(operator)))
  expect([...firsts].toSorted()).toEqual(['a', 'b', 'c'])
})

test('several processes choose the same egress as one process with all egresses', () => {
  const { world } = createTestProber(knows())
  const probers = ['a', 'b', 'c'].map(
    name => new EgressProber({ ...world, egress: { ...world.egress, name } }, () => ROW),
  )
  const [one] = cluster(['c', 'a', 'b']).fleets as [EgressPool]
  const whole = new EgressPool(probers)
  for (const operator of OPERATORS) {
    expect(one.ranked(operator)).toEqual(whole.ranked(operator))
  }
})

test('a probe that must run in this process uses one of its own egresses', () => {
  const [one] = cluster(['a', 'b']).fleets as [EgressPool]
  for (const operator of OPERATORS) {
    expect(one.own.primaryFor(operator)).toBe('a')
    expect(one.own.availableFor(operator)).toEqual(['a'])
    expect(one.own.ranked(operator)).toEqual(['a'])
  }
  expect(one.names).toEqual(['a'])
  expect(() => one.prober('b')).toThrow('There is no egress "b", only a.')
  expect(one.limitsFor('mx.test')).toEqual(ROW)
})

test('an operator that blocks the egress of one process is probed by another process', async () => {
  const { clock, fleets } = cluster(['a', 'b'])
  const [one, two] = fleets as [EgressPool, EgressPool]
  one.prober('a').rateController('op').refused(REFUSAL)
  expect(two.availableFor('op')).toEqual(['b'])
  expect(two.primaryFor('op')).toBe('b')
  expect(one.primaryFor('op')).toBe('b')
  expect(one.isDeprioritised('a', 'op')).toBe(true)
  expect(two.isDeprioritised('b', 'op')).toBe(false)
  // A block applies to one operator and one egress only.
  expect(two.availableFor('other').toSorted()).toEqual(['a', 'b'])
  await clock.advance(31 * MINUTE)
  expect(two.availableFor('op').toSorted()).toEqual(['a', 'b'])
})

test('no egress is deprioritized if all are blocked, and the first one is primary', () => {
  const [one, two] = cluster(['a', 'b']).fleets as [EgressPool, EgressPool]
  one.prober('a').rateController('op').refused(REFUSAL)
  two.prober('b').rateController('op').refused(REFUSAL)
  expect(one.availableFor('op')).toEqual([])
  expect(one.isDeprioritised('a', 'op')).toBe(false)
  expect(one.primaryFor('op')).toBe(one.ranked('op')[0])
})

test('a block of an egress applies to all processes that use it', () => {
  const { share } = cluster(['a'])
  const { world } = createTestProber(knows())
  const own = { ...world, egress: { ...world.egress, name: 'a' } }
  const [one, two] = [1, 2].map(() => new EgressProber(own, () => ROW, undefined, share)) as [
    EgressProber,
    EgressProber,
  ]
  one.rateController('op').refused(REFUSAL)
  expect(two.mayAsk('op')).toBe(false)
  expect(two.rateController('op').isRefused).toBe(true)
  two.rateController('op').succeeded()
  expect(one.mayAsk('op')).toBe(true)
})

test('egresses of processes that join and leave are added and removed', () => {
  const { alive, fleets } = cluster(['a', 'b'])
  const [one] = fleets as [EgressPool]
  expect(one.ranked('op').toSorted()).toEqual(['a', 'b'])
  alive.names = ['a', 'b', 'c']
  expect(one.ranked('op').toSorted()).toEqual(['a', 'b', 'c'])
  alive.names = []
  expect(one.ranked('op')).toEqual(['a'])
  expect(one.primaryFor('op')).toBe('a')
})

test('the settings restrict the egresses for an operator across all processes', () => {
  const [one, two] = cluster(['a', 'b'], { op: ['b'], gone: ['z'] }).fleets as [
    EgressPool,
    EgressPool,
  ]
  expect(one.ranked('op')).toEqual(['b'])
  expect(one.primaryFor('op')).toBe('b')
  expect(two.primaryFor('op')).toBe('b')
  expect(one.ranked('gone').toSorted()).toEqual(['a', 'b'])
  // A probe that must run here uses an egress that is not allowed rather than none.
  expect(one.own.primaryFor('op')).toBe('a')
})
