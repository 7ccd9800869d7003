import { EventEmitter } from 'node:events'
import type { Context } from 'hono'
import { expect, test } from 'vitest'
import type { Env } from '../../../src/api/context.ts'
import { AdmissionQueue } from '../../../src/api/middleware/admission-queue.ts'
import { type Clock, yieldToEventLoop } from '../../../src/platform/clock.ts'

/** A queue, and verifications that run until `release`. */
function queueOf() {
  const time = { ms: 0 }
  const clock: Clock = { now: () => time.ms, monotonicNow: () => time.ms, after: () => () => {} }
  const queue = new AdmissionQueue(clock)
  const started: number[] = []
  const { promise, resolve: release } = Promise.withResolvers<void>()
  const enter = (client: number, outgoing = new EventEmitter()) =>
    queue.run({ env: { outgoing } } as unknown as Context<Env>, () => {
      started.push(client)
      return promise
    })
  const enterAll = (clients: number) => Array.from({ length: clients }, (_, n) => enter(n))
  return { time, queue, started, enter, enterAll, release }
}

const firstOf = (clients: number) => Array.from({ length: clients }, (_, n) => n)

test('without new connections verifications start at once up to a number, and then some in each turn', async () => {
  const { started, enterAll, release } = queueOf()
  const all = enterAll(200)
  const atOnce = started.length
  await yieldToEventLoop()
  const next = started.length
  release()
  await Promise.all(all)
  expect(atOnce).toBeGreaterThan(10)
  expect(next).toBeGreaterThan(atOnce)
  expect(next).toBeLessThan(200)
  expect(started).toEqual(firstOf(200))
})

test('while clients connect in each turn, one verification starts in ten milliseconds', async () => {
  const { time, queue, started, enterAll, release } = queueOf()
  const runVerifications = async () => {
    for (let turn = 0; turn < 100; turn++) {
      queue.noteRequest({})
      await yieldToEventLoop()
    }
    return [...started]
  }
  queue.noteRequest({})
  const all = enterAll(100)
  const first = await runVerifications()
  time.ms += 10
  const second = await runVerifications()
  release()
  time.ms += 10
  await Promise.all(all)
  expect([first, second]).toEqual([[0], [0, 1]])
  expect(started).toEqual(firstOf(100))
})

test('requests of known connections do not count as new connections', async () => {
  const { time, queue, started, enterAll, release } = queueOf()
  const socket = {}
  queue.noteRequest(socket)
  time.ms += 10
  queue.noteRequest(socket)
  const all = enterAll(20)
  release()
  expect(started).toEqual(firstOf(20))
  await Promise.all(all)
})

test('after a long turn, one verification starts', async () => {
  const { time, started, enterAll, release } = queueOf()
  const all = enterAll(200)
  const atOnce = started.length
  time.ms += 21
  await yieldToEventLoop()
  const next = started.length
  release()
  await Promise.all(all)
  expect(next).toBe(atOnce + 1)
})

test('a verification of a disconnected client does not start', async () => {
  const { queue, started, enter, release } = queueOf()
  queue.noteRequest({})
  release()
  const leaving = new EventEmitter()
  const all = [enter(0), enter(1, leaving), enter(2)]
  leaving.emit('close')
  const ends = await Promise.allSettled(all)
  expect(ends.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(started).toEqual([0, 2])
})
