import { expect, test } from 'vitest'
import { type AfterFailure, createGroups } from '../../../src/work/books/groups.ts'
import { fakeClock } from '../../support/clock.ts'

/** Writes what it is given, unless told to fail. */
function house(options: { next?: (tries: number) => AfterFailure } = {}) {
  const clock = fakeClock()
  const written: { group: number[]; again: boolean }[] = []
  const failures: number[] = []
  const state = { failing: false, poison: -1 }
  const groups = createGroups<number>({
    clock,
    async write(group, again) {
      if (state.failing || group.includes(state.poison)) throw new Error('disk full')
      written.push({ group: [...group], again })
    },
    onFailure(_, __, tries) {
      failures.push(tries)
      return options.next?.(tries) ?? 'retry'
    },
  })
  const sizes = () => written.map(({ group }) => group.length)
  return { clock, groups, written, failures, sizes, state }
}

test('what comes in one turn of the event loop is written together, in its order', async () => {
  const { clock, groups, written } = house()
  const added = [groups.add(1), groups.add(2)]
  expect([written.length, groups.waiting]).toEqual([0, 2])
  await Promise.all(added)
  expect(written).toEqual([{ group: [1, 2], again: false }])
  expect(groups.waiting).toBe(0)
  await groups.add(3)
  expect(written.at(-1)).toEqual({ group: [3], again: false })
  expect(clock.pending).toBe(0)
})

test('what comes while a group is written gathers in the next, of a thousand at most', async () => {
  const { clock, groups, sizes } = house()
  for (let n = 0; n < 1_950; n++) void groups.add(n)
  await groups.flushed()
  expect(sizes()).toEqual([1_000, 950])
  expect(clock.pending).toBe(0)
})

test('what fails is tried again each second by itself, and then what came meanwhile', async () => {
  const { clock, groups, written, failures, state } = house()
  state.failing = true
  void groups.add(1)
  await clock.advance(0)
  for (let n = 2; n < 100; n++) void groups.add(n)
  await clock.advance(2_999)
  expect(failures).toEqual([1, 2, 3])
  expect([groups.waiting, groups.fault]).toEqual([99, new Error('disk full')])
  state.failing = false
  await clock.advance(1)
  expect(written[0]).toEqual({ group: [1], again: true })
  await groups.flushed()
  expect(written[1]).toMatchObject({ again: false })
  expect(written[1]?.group).toHaveLength(98)
  expect([groups.waiting, groups.fault]).toEqual([0, null])
})

test('who waits is told after three failures, and who comes later at once; all is written in the end', async () => {
  const { clock, groups, state, sizes } = house()
  state.failing = true
  const told: string[] = []
  const wait = (name: string) =>
    void groups.add(1).catch(({ message }) => void told.push(`${name}: ${message}`))
  void wait('first')
  await clock.advance(0)
  void wait('meanwhile')
  await clock.advance(1_999)
  expect(told).toEqual([])
  await clock.advance(1)
  expect(told).toEqual(['first: disk full', 'meanwhile: disk full'])
  await wait('later')
  expect(told.at(-1)).toBe('later: disk full')
  state.failing = false
  await clock.advance(1_000)
  await groups.flushed()
  expect(sizes()).toEqual([1, 2])
})

test('what is given up lets the next go on', async () => {
  const { groups, written, failures, state } = house({
    next: tries => (tries < 2 ? 'split' : 'drop'),
  })
  state.failing = true
  await expect(groups.add(1)).rejects.toThrow('disk full')
  state.failing = false
  await groups.add(2)
  expect(failures).toEqual([1, 2])
  expect(written).toEqual([{ group: [2], again: false }])
})

test('one thing that cannot be written is found by trying each by itself', async () => {
  const { groups, written, state } = house({ next: tries => (tries < 2 ? 'split' : 'drop') })
  state.poison = 2
  const added = await Promise.allSettled([1, 2, 3].map(groups.add))
  expect(added.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(written.map(({ group }) => group)).toEqual([[1], [3]])
})

test('who waits until all is durable waits for the failed as well', async () => {
  const { clock, groups, state } = house()
  state.failing = true
  void groups.add(1)
  let done = false
  const flushed = groups.flushed().then(() => {
    done = true
  })
  await clock.advance(3_000)
  expect(done).toBe(false)
  state.failing = false
  await clock.advance(2_000)
  await flushed
  expect(groups.waiting).toBe(0)
})

test('stopping writes what there is, at once', async () => {
  const { clock, groups, sizes } = house()
  for (let n = 0; n < 1_650; n++) void groups.add(n)
  await groups.stop()
  expect(sizes()).toEqual([1_000, 650])
  expect(clock.pending).toBe(0)
  await groups.stop()
})

test('stopping does not wait for a disk that stays full', async () => {
  const { clock, groups, state } = house()
  state.failing = true
  void groups.add(1)
  await groups.stop()
  expect(groups.waiting).toBe(1)
  expect(clock.pending).toBe(0)
})
