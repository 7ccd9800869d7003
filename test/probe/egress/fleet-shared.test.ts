import { expect, test } from 'vitest'
import { MINUTE } from '../../../src/base/clock.ts'
import { Fleet } from '../../../src/probe/egress/fleet.ts'
import type { PaceKey, PaceShare } from '../../../src/probe/pace-share.ts'
import { Prober } from '../../../src/probe/probe.ts'
import { createTestProber, REFUSAL, ROW } from '../../support/prober.ts'
import { knows } from '../../support/recipients.ts'
import { fakePaceShare } from '../../support/shared-rate-state.ts'

const OPERATORS = Array.from({ length: 300 }, (_, n) => `mail${n}.example`)

/** One process each for these egresses, and who is alive. */
function cluster(names: readonly string[], allowed: Record<string, readonly string[]> = {}) {
  const { world, clock } = createTestProber(knows())
  const share = fakePaceShare(clock)
  const alive = { names }
  const fleetOf = (name: string, paces: PaceShare = share) => {
    const own = { ...world, egress: { ...world.egress, name } }
    const prober = new Prober(own, () => ROW, undefined, paces)
    const others = {
      names: () => alive.names,
      isRefused: (key: PaceKey) => paces.refusal(key) !== null,
    }
    return new Fleet([prober], operator => allowed[operator] ?? null, others)
  }
  return { clock, share, alive, fleets: names.map(name => fleetOf(name)) }
}

test('processes with an egress each agree on who asks an operator', () => {
  const { fleets } = cluster(['a', 'b', 'c'])
  const [one, two, three] = fleets as [Fleet, Fleet, Fleet]
  for (const operator of OPERATORS) {
    expect(two.inOrder(operator)).toEqual(one.inOrder(operator))
    expect(three.firstFor(operator)).toBe(one.firstFor(operator))
  }
  const firsts = new Set(OPERATORS.map(operator => one.firstFor(operator)))
  expect([...firsts].toSorted()).toEqual(['a', 'b', 'c'])
})

test('they agree with one process that has all of them', () => {
  const { world } = createTestProber(knows())
  const probers = ['a', 'b', 'c'].map(
    name => new Prober({ ...world, egress: { ...world.egress, name } }, () => ROW),
  )
  const [one] = cluster(['c', 'a', 'b']).fleets as [Fleet]
  const whole = new Fleet(probers)
  for (const operator of OPERATORS) {
    expect(one.inOrder(operator)).toEqual(whole.inOrder(operator))
  }
})

test('what must be asked here is asked by an egress of ours', () => {
  const [one] = cluster(['a', 'b']).fleets as [Fleet]
  for (const operator of OPERATORS) {
    expect(one.own.firstFor(operator)).toBe('a')
    expect(one.own.willing(operator)).toEqual(['a'])
    expect(one.own.inOrder(operator)).toEqual(['a'])
  }
  expect(one.names).toEqual(['a'])
  expect(() => one.prober('b')).toThrow('There is no egress "b", only a.')
  expect(one.row('mx.test')).toEqual(ROW)
})

test('an operator that refuses the egress of one process is asked by another, which knows it', async () => {
  const { clock, fleets } = cluster(['a', 'b'])
  const [one, two] = fleets as [Fleet, Fleet]
  one.prober('a').pace('op').refused(REFUSAL)
  expect(two.willing('op')).toEqual(['b'])
  expect(two.firstFor('op')).toBe('b')
  expect(one.firstFor('op')).toBe('b')
  expect(one.standsBack('a', 'op')).toBe(true)
  expect(two.standsBack('b', 'op')).toBe(false)
  // A refusal is of one operator and egress alone.
  expect(two.willing('other').toSorted()).toEqual(['a', 'b'])
  await clock.advance(31 * MINUTE)
  expect(two.willing('op').toSorted()).toEqual(['a', 'b'])
})

test('where all are refused nobody stands back, and the first is told so', () => {
  const [one, two] = cluster(['a', 'b']).fleets as [Fleet, Fleet]
  one.prober('a').pace('op').refused(REFUSAL)
  two.prober('b').pace('op').refused(REFUSAL)
  expect(one.willing('op')).toEqual([])
  expect(one.standsBack('a', 'op')).toBe(false)
  expect(one.firstFor('op')).toBe(one.inOrder('op')[0])
})

test('the same egress of two processes is refused in both', () => {
  const { share } = cluster(['a'])
  const { world } = createTestProber(knows())
  const own = { ...world, egress: { ...world.egress, name: 'a' } }
  const [one, two] = [1, 2].map(() => new Prober(own, () => ROW, undefined, share)) as [
    Prober,
    Prober,
  ]
  one.pace('op').refused(REFUSAL)
  expect(two.mayAsk('op')).toBe(false)
  expect(two.pace('op').isRefused).toBe(true)
  two.pace('op').succeeded()
  expect(one.mayAsk('op')).toBe(true)
})

test('who comes and goes is heard of', () => {
  const { alive, fleets } = cluster(['a', 'b'])
  const [one] = fleets as [Fleet]
  expect(one.inOrder('op').toSorted()).toEqual(['a', 'b'])
  alive.names = ['a', 'b', 'c']
  expect(one.inOrder('op').toSorted()).toEqual(['a', 'b', 'c'])
  alive.names = []
  expect(one.inOrder('op')).toEqual(['a'])
  expect(one.firstFor('op')).toBe('a')
})

test('the settings say who may ask an operator, whichever process has it', () => {
  const [one, two] = cluster(['a', 'b'], { op: ['b'], gone: ['z'] }).fleets as [Fleet, Fleet]
  expect(one.inOrder('op')).toEqual(['b'])
  expect(one.firstFor('op')).toBe('b')
  expect(two.firstFor('op')).toBe('b')
  expect(one.inOrder('gone').toSorted()).toEqual(['a', 'b'])
  // What must be asked here is: better by one that was not meant than by nobody.
  expect(one.own.firstFor('op')).toBe('a')
})
