import { expect, test } from 'vitest'
import type { Engine } from '../../../src/engine/engine.ts'
import { ProbeScheduler } from '../../../src/jobs/probing/probe-scheduler.ts'
import type { Slot } from '../../../src/jobs/probing/probe-tasks.ts'
import { fakeClock } from '../../support/clock.ts'

/** Creates a scheduler, and records the egresses whose tasks it enqueues. */
function createFixture(
  count: number,
  isShared: boolean,
  mayAsk: (name: string) => boolean = () => true,
) {
  const names = Array.from({ length: count }, (_, n) => `e${n}`)
  const put: string[] = []
  const entries = {
    put: async () => {},
    putAll: async ({ egress }: Slot) => void put.push(egress),
  }
  const available = names.filter(mayAsk)
  const egressPool = {
    all: names,
    mayAsk,
    availableFor: () => available,
    ranked: () => names,
    primaryFor: () => available[0],
    sharesLists: (operator: string) => operator === 'op',
    row: () => ({ sessionsMax: 2 }),
  }
  const clock = fakeClock()
  const slots = new ProbeScheduler(entries, clock, isShared)
  return {
    names,
    available,
    clock,
    slots,
    egressPool,
    async by(egress: string, operator = 'op') {
      put.length = 0
      await slots.putAll({ egressPool } as unknown as Engine, { operator, egress })
      return [...put]
    },
  }
}

test('an egress with too much to do wakes all others if they are few', async () => {
  const { names, by } = createFixture(8, true)
  expect(await by('e3')).toEqual(names)
})

test('an operator with one limit for all egresses is probed only by its primary egress', async () => {
  expect(await createFixture(8, true).by('e3', 'other')).toEqual(['e0'])
})

test('if egresses are many, each wakes a few, and all are woken', async () => {
  const services = createFixture(1_000, true)
  const woken = new Set(['e0'])
  for (const egress of woken) {
    // Each egress is another process with its own backoff.
    const calls = await createFixture(1_000, true).by(egress)
    expect(calls.length).toBeLessThanOrEqual(6)
    for (const name of calls) woken.add(name)
  }
  expect(woken.size).toBe(services.names.length)
})

test.each<[string, (index: number) => boolean]>([
  ['the first', index => index > 0],
  ['more than one branch', index => index > 5],
  ['two of three', index => index % 3 === 1],
])(
  'an egress that may not probe is skipped, and its children are woken: %s',
  async (_, mayAskAt) => {
    const mayAsk = (name: string) => mayAskAt(Number(name.slice(1)))
    const { available } = createFixture(1_000, true, mayAsk)
    const woken = new Set(available.slice(0, 1))
    for (const egress of woken) {
      const calls = await createFixture(1_000, true, mayAsk).by(egress)
      for (const name of calls) if (mayAsk(name)) woken.add(name)
    }
    expect([...woken].sort()).toEqual([...available].sort())
  },
)

test('each further wakeup includes one more egress, because one in the tree may stall', async () => {
  const { clock, by } = createFixture(1_000, true)
  const calls = new Set<string>()
  for (let n = 0; n < 1_000; n++) {
    for (const name of await by('e999')) calls.add(name)
    await clock.advance(8_000)
  }
  expect(calls.size).toBe(1_000)
})

/**
 * Returns the times, in seconds from now, at which an egress that always has too much to do wakes
 * others within five minutes.
 */
async function listWakeups({ by, clock }: ReturnType<typeof createFixture>): Promise<number[]> {
  const times: number[] = []
  for (let second = 0; second < 300; second++) {
    if ((await by('e0')).length > 0) times.push(second)
    await clock.advance(1_000)
  }
  return times
}

test('backs off wakeups while there is always more to do', async () => {
  const times = await listWakeups(createFixture(9, true))
  expect(times.slice(0, 6)).toEqual([0, 1, 3, 7, 15, 23])
  expect(times.at(-1)).toBe(295)
})

test('resets the backoff of an egress that found nothing, because others completed their tasks', async () => {
  const services = createFixture(9, true)
  await listWakeups(services)
  expect(await services.by('e0')).toEqual([])
  services.slots.onEmptyClaim('op')
  expect(await services.by('e0')).not.toEqual([])
  expect(await services.by('e0')).toEqual([])
})

test('wakes a new egress at once', async () => {
  const services = createFixture(9, true)
  await listWakeups(services)
  services.egressPool.all = [...services.names, 'e9']
  expect(await services.by('e0')).not.toEqual([])
  expect(await services.by('e0')).toEqual([])
})

test('wakes all egresses each time in a single process', async () => {
  const { by } = createFixture(3, false)
  expect([await by('e0'), await by('e0')]).toEqual([
    ['e0', 'e1', 'e2'],
    ['e0', 'e1', 'e2'],
  ])
})
