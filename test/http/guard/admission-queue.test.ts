import { EventEmitter } from 'node:events'
import type { Context } from 'hono'
import { expect, test } from 'vitest'
import { breathe, type Clock } from '../../../src/base/clock.ts'
import type { Env } from '../../../src/http/context.ts'
import { AdmissionQueue } from '../../../src/http/guard/admission-queue.ts'

/** A queue, and how many verifications have started. */
function queueOf(clients: number) {
  const time = { ms: 0 }
  const clock: Clock = { now: () => time.ms, ticks: () => time.ms, after: () => () => {} }
  const queue = new AdmissionQueue(clock)
  const outgoing = Array.from({ length: clients }, () => new EventEmitter())
  const started: number[] = []
  const enter = () =>
    outgoing.map((one, client) => {
      const c = { env: { outgoing: one } } as unknown as Context<Env>
      return queue.wait(c).then(() => void started.push(client))
    })
  return { time, queue, outgoing, started, enter }
}

test('verifications start in their order, some in each turn of the event loop', async () => {
  const { started, enter } = queueOf(100)
  const all = enter()
  await breathe()
  expect(started.length).toBeGreaterThan(10)
  expect(started.length).toBeLessThan(100)
  await Promise.all(all)
  expect(started).toEqual(Array.from({ length: 100 }, (_, client) => client))
})

test('while clients connect in each turn, one starts in ten milliseconds', async () => {
  const { time, queue, started, enter } = queueOf(100)
  const all = enter()
  const crowd = async (turns: number) => {
    for (let turn = 0; turn < turns; turn++) {
      queue.noteRequest({})
      await breathe()
    }
  }
  await crowd(200)
  expect(started).toEqual([0])
  time.ms += 10
  await crowd(200)
  expect(started).toEqual([0, 1])
  await Promise.all(all)
})

test('requests of connections that are known hold nothing up', async () => {
  const { queue, started, enter } = queueOf(100)
  const socket = {}
  queue.noteRequest(socket)
  const all = enter()
  await breathe()
  const first = started.length
  queue.noteRequest(socket)
  await breathe()
  expect(started.length).toBeGreaterThan(first)
  await Promise.all(all)
})

test('a turn that takes long has enough to do: one starts', async () => {
  const { time, started, enter } = queueOf(100)
  const all = enter()
  time.ms += 11
  await breathe()
  expect(started).toEqual([0])
  await Promise.all(all)
})

test('whose client has left does not start', async () => {
  const { outgoing, started, enter } = queueOf(3)
  const all = enter()
  outgoing[1]?.emit('close')
  const ends = await Promise.allSettled(all)
  expect(ends.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(started).toEqual([0, 2])
})
