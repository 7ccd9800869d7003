import { expect, test } from 'vitest'
import { SharedRateEntry } from '../../../src/cluster/rate-control/shared-rate-entry.ts'
import { newState } from '../../../src/engine/rate-control/rules.ts'

const ROW = {
  sessionsMax: 1,
  recipientsPerSession: 20,
  recipientsPerTransaction: 20,
  sessionsPerSecond: 1,
  unknownStreakMax: 20,
}
const NOW = 1_000_000

/** An entry of `mem_a` with its stored state: the connections of each member. */
function entryOf() {
  const entry = new SharedRateEntry({ operator: 'mx.test', egress: 'a' }, ROW)
  entry.setMember('mem_a')
  const read = (
    held: Readonly<Record<string, number>>,
    o: { version: number; members: readonly string[]; at: number },
  ) => entry.read({ stored: { state: newState(ROW), held, waiting: {} }, now: NOW, ...o })
  return { entry, read }
}

test('a member that registered after a read started is not dropped because of that read', () => {
  const { entry, read } = entryOf()
  const startedAt = 5
  read({ mem_b: 1 }, { version: 2, members: ['mem_a', 'mem_b'], at: 7 })
  entry.dropExpiredMembers(['mem_a'], startedAt, NOW)
  expect(entry.sessions).toBe(1)
  entry.dropExpiredMembers(['mem_a'], 8, NOW)
  expect(entry.sessions).toBe(0)
})

test('a response that was overtaken by a later one changes nothing', () => {
  const { entry, read } = entryOf()
  const members = ['mem_a', 'mem_b']
  read({ mem_b: 1 }, { version: 3, members, at: 7 })
  read({}, { version: 2, members, at: 8 })
  expect(entry.sessions).toBe(1)
  read({}, { version: 4, members, at: 9 })
  expect(entry.sessions).toBe(0)
})
