import { expect, test } from 'vitest'
import { createGroups } from '../../../src/work/books/groups.ts'
import { fakeClock } from '../../support/clock.ts'

/** Writes what it is given, unless told to fail. */
function house(options: { goesOn?: (tries: number) => boolean } = {}) {
  const clock = fakeClock()
  const written: { group: number[]; again: boolean }[] = []
  const failures: number[] = []
  const state = { failing: false }
  const groups = createGroups<number>({
    clock,
    async write(group, again) {
      if (state.failing) throw new Error('disk full')
      written.push({ group: [...group], again })
    },
    onFailure(_, __, tries) {
      failures.push(tries)
      return options.goesOn?.(tries) ?? true
    },
  })
  const sizes = () => written.map(({ group }) => group.length)
  return { clock, groups, written, failures, sizes, state }
}

test('what comes within 100 ms is written together, in its order', async () => {
  const { clock, groups, written } = house()
  groups.add(1)
  await clock.advance(99)
  groups.add(2)
  expect([written.length, groups.waiting]).toEqual([0, 2])
  await clock.advance(1)
  expect(written).toEqual([{ group: [1, 2], again: false }])
  expect(groups.waiting).toBe(0)
  groups.add(3)
  await clock.advance(100)
  expect(written.at(-1)).toEqual({ group: [3], again: false })
  expect(clock.pending).toBe(0)
})

test('five hundred are written at once', async () => {
  const { clock, groups, sizes } = house()
  for (let n = 0; n < 500; n++) groups.add(n)
  await clock.advance(0)
  expect(sizes()).toEqual([500])
})

test('what comes while a group is written gathers in the next, of a thousand at most', async () => {
  const { clock, groups, sizes } = house()
  for (let n = 0; n < 1_950; n++) groups.add(n)
  await groups.flushed()
  expect(sizes()).toEqual([500, 1_000, 450])
  expect(clock.pending).toBe(0)
})

test('what fails is tried again each second by itself, and then what came meanwhile', async () => {
  const { clock, groups, written, failures, state } = house()
  state.failing = true
  groups.add(1)
  await clock.advance(100)
  for (let n = 2; n < 100; n++) groups.add(n)
  await clock.advance(2_999)
  expect(failures).toEqual([1, 2, 3])
  expect([groups.waiting, groups.fault]).toEqual([99, new Error('disk full')])
  state.failing = false
  await clock.advance(1)
  expect(written).toEqual([{ group: [1], again: true }])
  await clock.advance(100)
  expect(written[1]).toMatchObject({ again: false })
  expect(written[1]?.group).toHaveLength(98)
  expect([groups.waiting, groups.fault]).toEqual([0, null])
})

test('what is given up lets the next go on', async () => {
  const { clock, groups, written, failures, state } = house({ goesOn: tries => tries < 2 })
  state.failing = true
  groups.add(1)
  await clock.advance(1_100)
  state.failing = false
  groups.add(2)
  await clock.advance(100)
  expect(failures).toEqual([1, 2])
  expect(written).toEqual([{ group: [2], again: false }])
})

test('who waits until all is durable waits for the failed as well', async () => {
  const { clock, groups, state } = house()
  state.failing = true
  groups.add(1)
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
  for (let n = 0; n < 1_650; n++) groups.add(n)
  await groups.stop()
  expect(sizes()).toEqual([500, 1_000, 150])
  expect(clock.pending).toBe(0)
  await groups.stop()
})

test('stopping does not wait for a disk that stays full', async () => {
  const { clock, groups, state } = house()
  state.failing = true
  groups.add(1)
  await groups.stop()
  expect(groups.waiting).toBe(1)
  expect(clock.pending).toBe(0)
})
