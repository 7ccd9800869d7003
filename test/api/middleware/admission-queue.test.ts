import { expect, test } from 'vitest'
import { AdmissionQueue } from '../../../src/api/middleware/admission-queue.ts'
import { type Clock, yieldToEventLoop } from '../../../src/platform/clock.ts'

/** A queue, and requests that are unanswered until they leave. */
function queueOf() {
  const time = { ms: 0 }
  const clock: Clock = { now: () => time.ms, monotonicNow: () => time.ms, after: () => () => {} }
  const queue = new AdmissionQueue(clock)
  const started: number[] = []
  const enter = (request: number, key = 'key') => {
    const response = { request }
    queue.enter(response, key, () => started.push(request))
    return response
  }
  const enterAll = (requests: number) => Array.from({ length: requests }, (_, n) => enter(n))
  return { time, queue, started, enter, enterAll }
}

const firstOf = (clients: number) => Array.from({ length: clients }, (_, n) => n)

test('without new connections requests start at once up to a number, and then some in each turn', async () => {
  const { started, enterAll, queue } = queueOf()
  const all = enterAll(200)
  const atOnce = started.length
  await yieldToEventLoop()
  const next = started.length
  for (const response of all.slice(0, next)) queue.leave(response)
  await yieldToEventLoop()
  await yieldToEventLoop()
  await yieldToEventLoop()
  expect(atOnce).toBeGreaterThan(10)
  expect(next).toBeGreaterThan(atOnce)
  expect(next).toBeLessThan(200)
  expect(started).toEqual(firstOf(200))
})

test('while clients connect in each turn, one request starts in ten milliseconds', async () => {
  const { time, queue, started, enterAll } = queueOf()
  const connect = async () => {
    for (let turn = 0; turn < 100; turn++) {
      queue.noteRequest({})
      await yieldToEventLoop()
    }
    return [...started]
  }
  queue.noteRequest({})
  enterAll(20)
  const first = await connect()
  time.ms += 10
  const second = await connect()
  time.ms += 10
  await yieldToEventLoop()
  await yieldToEventLoop()
  expect([first, second]).toEqual([[0], [0, 1]])
  expect(started).toEqual(firstOf(20))
})

test('requests of known connections do not count as new connections', () => {
  const { time, queue, started, enterAll } = queueOf()
  const socket = {}
  queue.noteRequest(socket)
  time.ms += 10
  queue.noteRequest(socket)
  enterAll(20)
  expect(started).toEqual(firstOf(20))
})

test('after a long turn, one request starts', async () => {
  const { time, started, enterAll } = queueOf()
  enterAll(200)
  const atOnce = started.length
  time.ms += 21
  await yieldToEventLoop()
  expect(started.length).toBe(atOnce + 1)
})

test('a request of a disconnected client does not start', async () => {
  const { time, queue, started, enter } = queueOf()
  queue.noteRequest({})
  const [, leaving] = [enter(0), enter(1), enter(2)]
  queue.leave(leaving as object)
  expect(queue.waiting).toBe(2)
  time.ms += 10
  await yieldToEventLoop()
  await yieldToEventLoop()
  expect(started).toEqual([0, 2])
})

test('requests are counted by key until they leave, however often that is said', () => {
  const { queue, enter } = queueOf()
  const [first] = [enter(0, 'a'), enter(1, 'a'), enter(2, 'b')]
  expect([queue.countOf('a'), queue.countOf('b'), queue.countOf('c')]).toEqual([2, 1, 0])
  queue.leave(first as object)
  queue.leave(first as object)
  expect(queue.countOf('a')).toBe(1)
})

test('a request knows when it arrived, as the wait is part of its deadline', () => {
  const { time, queue, enter } = queueOf()
  time.ms = 5
  const response = enter(0)
  time.ms = 1_000
  expect([queue.arrivedAt(response), queue.arrivedAt({}), queue.arrivedAt(undefined)]).toEqual([
    ...[5, null, null],
  ])
})
