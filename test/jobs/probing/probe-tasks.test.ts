import { expect, test } from 'vitest'
import { batchedTasks, parseSlot, slotKey } from '../../../src/jobs/probing/probe-tasks.ts'
import { SECOND } from '../../../src/platform/clock.ts'
import { fakeClock } from '../../support/clock.ts'

/** A queue that records its tasks and can be made to fail. */
function recordingQueue() {
  const put: [kind: string, keys: string, dueAt: number | undefined][] = []
  const queue = {
    put,
    isUnavailable: false,
    async putAll(kind: string, keys: readonly string[], dueAt?: number) {
      if (queue.isUnavailable) throw new Error('unavailable')
      put.push([kind, keys.join(' '), dueAt])
    },
  }
  return queue
}

const createTasks = (queue: ReturnType<typeof recordingQueue>, clock = fakeClock()) => ({
  clock,
  entries: batchedTasks(queue as never, clock),
})

test('batches tasks that are added together, each once', async () => {
  const queue = recordingQueue()
  const { entries, clock } = createTasks(queue)
  const put = Promise.all([
    entries.put({ operator: 'a', egress: 'x' }),
    entries.put({ operator: 'b', egress: 'x' }),
    entries.put({ operator: 'a', egress: 'x' }, clock.now() - 1),
    entries.put({ operator: 'a', egress: 'y' }),
    entries.putAll({ operator: 'a', egress: 'x' }, 3),
  ])
  expect(queue.put).toEqual([])
  await clock.advance(20)
  await put
  expect(queue.put).toEqual([
    ['probe/x', 'a#0 b#0 a#1 a#2', undefined],
    ['probe/y', 'a#0', undefined],
  ])
})

test('rounds later tasks up to the second', async () => {
  const queue = recordingQueue()
  const { entries, clock } = createTasks(queue)
  const now = clock.now()
  const put = Promise.all(
    [1, 900, 1_000, 1_001].map((ms, n) =>
      entries.put({ operator: `op${n}`, egress: 'x' }, now + ms),
    ),
  )
  await clock.advance(20)
  await put
  expect(queue.put).toEqual([
    ['probe/x', 'op0#0 op1#0 op2#0', now + SECOND],
    ['probe/x', 'op3#0', now + 2 * SECOND],
  ])
})

test('rejects when a batch cannot be enqueued, and enqueues the next ones', async () => {
  const queue = recordingQueue()
  const { entries, clock } = createTasks(queue)
  queue.isUnavailable = true
  const failed = expect(entries.put({ operator: 'a', egress: 'x' })).rejects.toThrow('unavailable')
  await clock.advance(20)
  await failed
  queue.isUnavailable = false
  const put = entries.put({ operator: 'b', egress: 'x' })
  await clock.advance(20)
  await put
  expect(queue.put).toEqual([['probe/x', 'b#0', undefined]])
})

test('the name of an operator may contain any character', () => {
  for (const operator of ['a.test', 'a#1', 'a|b', 'ä ö']) {
    expect(parseSlot(slotKey(operator, 12), 'a')).toEqual({ operator, egress: 'a', number: 12 })
  }
})
