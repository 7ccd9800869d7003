import { expect, test } from 'vitest'
import { createMemoryQueue } from '../../src/queue/memory-queue.ts'
import type { Queue } from '../../src/queue/queue.ts'
import { drainEventLoop, waitUntil } from '../support/wait.ts'
import { createTestDelivery, slowTransport } from '../support/webhook-delivery.ts'

test('a run with a lost lease starts no requests and does not wait', async () => {
  const h = await createTestDelivery()
  await h.addWebhook()
  await h.addEvents(6)
  const post = slowTransport()
  const { queue, lose, ended } = losing(createMemoryQueue(h.clock, h.log))
  h.start({ transport: post, queue })
  await waitUntil(() => post.sent.length === 4)
  lose()
  await waitUntil(() => ended.length === 1)
  expect(ended).toEqual(['done'])
  await drainEventLoop(60)
  expect(post.sent).toHaveLength(4)
})

test('attempts of a run with a lost lease are recorded all the same', async () => {
  const h = await createTestDelivery({ polls: false })
  await h.addWebhook()
  await h.addEvents(1)
  const post = slowTransport()
  const { queue, lose, ended } = losing(createMemoryQueue(h.clock, h.log))
  h.start({ transport: post, queue })
  await waitUntil(() => post.sent.length === 1)
  lose()
  await waitUntil(() => ended.length === 1)
  post.answer(200)
  await waitUntil(async () => (await h.deliveries())[0]?.state === 'delivered')
  expect(await h.attempts()).toHaveLength(1)
})

/** A queue whose leases can be lost; it records the results of its handlers. */
function losing(inner: Queue) {
  const lost = new AbortController()
  const ended: unknown[] = []
  const queue: Queue = {
    ...inner,
    work: (kind, handler, options) =>
      inner.work(
        kind,
        async (key, lease) => {
          const next = await handler(key, { ...lease, lost: lost.signal })
          ended.push(next)
          return next
        },
        options,
      ),
  }
  return { queue, ended, lose: () => lost.abort() }
}
