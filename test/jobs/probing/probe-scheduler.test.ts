import { expect, test } from 'vitest'
import type { Engine } from '../../../src/engine/engine.ts'
import { ProbeScheduler } from '../../../src/jobs/probing/probe-scheduler.ts'
import type { Slot } from '../../../src/jobs/probing/probe-tasks.ts'
import { fakeClock } from '../../support/clock.ts'

/** Egresses in the order in which an operator is asked by them, and those whose entries were put. */
function called(count: number, isShared: boolean, mayAsk: (name: string) => boolean = () => true) {
  const names = Array.from({ length: count }, (_, n) => `e${n}`)
  const put: string[] = []
  const entries = {
    put: async () => {},
    putAll: async ({ egress }: Slot) => void put.push(egress),
  }
  const available = names.filter(mayAsk)
  const egressPool = {
    ...{
      all: names,
      mayAsk,
      availableFor: () => available,
      ranked: () => names,
      primaryFor: () => available[0],
      sharesLists: (operator: string) => operator === 'op',
    },
    row: () => ({ sessionsMax: 2 }),
  }
  const clock = fakeClock()
  const slots = new ProbeScheduler(entries, clock, isShared)
  return {
    ...{ names, available, clock, slots, egressPool },
    async by(egress: string, operator = 'op') {
      put.length = 0
      await slots.putAll({ egressPool } as unknown as Engine, { operator, egress })
      return [...put]
    },
  }
}

test('an egress that has too much to do calls all others, where they are few', async () => {
  const { names, by } = called(8, true)
  expect(await by('e3')).toEqual(names)
})

test('an operator that all egresses share one limit at is asked by its first alone', async () => {
  expect(await called(8, true).by('e3', 'other')).toEqual(['e0'])
})

test('where they are many each calls few, and all come to be called', async () => {
  const services = called(1_000, true)
  const there = new Set(['e0'])
  for (const egress of there) {
    // Each is another process, which waits for nobody's second.
    const calls = await called(1_000, true).by(egress)
    expect(calls.length).toBeLessThanOrEqual(6)
    for (const name of calls) there.add(name)
  }
  expect(there.size).toBe(services.names.length)
})

test.each<[string, (place: number) => boolean]>([
  ['the first', place => place > 0],
  ['a whole branch and more', place => place > 5],
  ['two of three', place => place % 3 === 1],
])('those that may not ask are left out, and leave nobody out: %s', async (_, mayAskAt) => {
  const mayAsk = (name: string) => mayAskAt(Number(name.slice(1)))
  const { available } = called(1_000, true, mayAsk)
  const there = new Set(available.slice(0, 1))
  for (const egress of there) {
    const calls = await called(1_000, true, mayAsk).by(egress)
    for (const name of calls) if (mayAsk(name)) there.add(name)
  }
  expect([...there].sort()).toEqual([...available].sort())
})

test('one that calls again calls another one besides, as one of the tree may stand still', async () => {
  const { clock, by } = called(1_000, true)
  const calls = new Set<string>()
  for (let n = 0; n < 1_000; n++) {
    for (const name of await by('e999')) calls.add(name)
    await clock.advance(8_000)
  }
  expect(calls.size).toBe(1_000)
})

/** At which times, in seconds from now, an egress that always has too much to do calls others, within five minutes. */
async function callsOf({ by, clock }: ReturnType<typeof called>): Promise<number[]> {
  const times: number[] = []
  for (let second = 0; second < 300; second++) {
    if ((await by('e0')).length > 0) times.push(second)
    await clock.advance(1_000)
  }
  return times
}

test('while there is always more to do, others are called ever more seldom', async () => {
  const times = await callsOf(called(9, true))
  expect(times.slice(0, 6)).toEqual([0, 1, 3, 7, 15, 23])
  expect(times.at(-1)).toBe(295)
})

test('who ran dry calls within a second when there is more again, as others gave their entries up', async () => {
  const services = called(9, true)
  await callsOf(services)
  expect(await services.by('e0')).toEqual([])
  services.slots.onEmptyClaim('op')
  expect(await services.by('e0')).not.toEqual([])
  expect(await services.by('e0')).toEqual([])
})

test('another egress is called as soon as it is there', async () => {
  const services = called(9, true)
  await callsOf(services)
  services.egressPool.all = [...services.names, 'e9']
  expect(await services.by('e0')).not.toEqual([])
  expect(await services.by('e0')).toEqual([])
})

test('in one process, where entries cost nothing, all are called each time', async () => {
  const { by } = called(3, false)
  expect([await by('e0'), await by('e0')]).toEqual([
    ['e0', 'e1', 'e2'],
    ['e0', 'e1', 'e2'],
  ])
})
