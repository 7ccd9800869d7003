import { expect, test } from 'vitest'
import { TtlMap } from '../../src/platform/ttl-map.ts'
import { fakeClock } from '../support/clock.ts'

const mapOf = (sizeMax: number) => {
  const clock = fakeClock()
  return { clock, map: new TtlMap<{ n: number }>({ sizeMax, clock }) }
}

test('an entry expires after its TTL', async () => {
  const { clock, map } = mapOf(9)
  map.set('a', { n: 1 }, 1_000)
  map.set('b', { n: 2 }, 2_000)
  await clock.advance(999)
  expect(map.get('a')).toEqual({ n: 1 })
  await clock.advance(1)
  expect(map.get('a')).toBeUndefined()
  expect(map.get('b')).toEqual({ n: 2 })
})

test('an entry set at time 0 expires too', () => {
  let ticks = 0
  const clock = { now: () => ticks, monotonicNow: () => ticks, after: () => () => {} }
  const map = new TtlMap<{ n: number }>({ sizeMax: 9, clock })
  map.set('a', { n: 1 }, 1_000)
  ticks = 1_001
  expect(map.get('a')).toBeUndefined()
})

test('a jump of the wall clock does not change the expiry', async () => {
  const { clock, map } = mapOf(9)
  map.set('a', { n: 1 }, 1_000)
  clock.jump(86_400_000)
  expect(map.get('a')).toEqual({ n: 1 })
  clock.jump(-2 * 86_400_000)
  await clock.advance(1_001)
  expect(map.get('a')).toBeUndefined()
})

test('getOrCreate extends the time of an entry, and replaces one that has expired', async () => {
  const { clock, map } = mapOf(9)
  expect(map.getOrCreate('a', () => ({ n: 1 }), 1_000)).toEqual({ n: 1 })
  await clock.advance(999)
  expect(map.getOrCreate('a', () => ({ n: 2 }), 1_000)).toEqual({ n: 1 })
  await clock.advance(999)
  expect(map.get('a')).toEqual({ n: 1 })
  await clock.advance(1)
  expect(map.getOrCreate('a', () => ({ n: 3 }), 1_000)).toEqual({ n: 3 })
  expect(map.size).toBe(1)
})

test('a full map evicts the least recently used entry', () => {
  const { map } = mapOf(2)
  map.set('a', { n: 1 }, 1_000)
  map.set('b', { n: 2 }, 1_000)
  map.get('a')
  map.set('c', { n: 3 }, 1_000)
  expect([map.get('a'), map.get('b'), map.get('c')]).toEqual([{ n: 1 }, undefined, { n: 3 }])
  expect(map.size).toBe(2)
})

test('setting an entry again replaces its value and TTL; deleting removes it', async () => {
  const { clock, map } = mapOf(9)
  map.set('a', { n: 1 }, 1_000)
  await clock.advance(900)
  map.set('a', { n: 2 }, 1_000)
  await clock.advance(900)
  expect(map.get('a')).toEqual({ n: 2 })
  map.delete('a')
  expect(map.get('a')).toBeUndefined()
})

test('entries() returns unexpired entries, the most recently used first, without counting as a use', async () => {
  const { clock, map } = mapOf(2)
  map.set('gone', { n: 0 }, 500)
  map.set('a', { n: 1 }, 1_000)
  await clock.advance(501)
  map.set('b', { n: 2 }, 1_000)
  expect([...map.entries()]).toEqual([
    ['b', { n: 2 }],
    ['a', { n: 1 }],
  ])
  map.set('c', { n: 3 }, 1_000)
  expect([...map.entries()].map(([key]) => key)).toEqual(['c', 'b'])
})
