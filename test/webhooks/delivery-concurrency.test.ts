import { expect, test } from 'vitest'
import { SECOND } from '../../src/platform/clock.ts'
import {
  createDeliveryConcurrency,
  RUNS_MAX,
  SLOW_RUNS_MAX,
} from '../../src/webhooks/start-deliveries.ts'
import { drainEventLoop, waitUntil } from '../support/wait.ts'
import { createTestDelivery, slowTransport } from '../support/webhook-delivery.ts'

test('hundreds of unresponsive endpoints do not delay others', async () => {
  const h = await createTestDelivery()
  const dead = RUNS_MAX + SLOW_RUNS_MAX + 50
  await h.addWebhooks(dead)
  await h.addEvents(12)
  const arrived: number[] = []
  h.transport.answer(async ({ url }) => {
    if (url.includes('healthy')) {
      arrived.push(h.clock.now())
      return 200
    }
    await new Promise<void>(resolve => void h.clock.after(30 * SECOND, resolve))
    return { fault: 'No response within 30 s.', durationMs: 30 * SECOND }
  })
  h.start()
  // Each has had one request by then.
  await h.clock.advance(90 * SECOND)
  await drainEventLoop(60)
  await h.addWebhook({ id: 'wh_healthy' })
  for (let n = 0; n < 10; n++) {
    const happened = h.clock.now()
    await h.addEvents()
    await h.clock.advance(SECOND)
    await waitUntil(() => arrived.length === n + 1)
    expect((arrived[n] ?? 0) - happened).toBeLessThanOrEqual(SECOND / 2)
  }
})

test('more due webhooks than slots are all reached', async () => {
  const h = await createTestDelivery()
  const count = RUNS_MAX + 20
  await h.addWebhooks(count)
  await h.addEvents(6)
  const post = slowTransport()
  h.start({ transport: post })
  await waitUntil(() => post.inFlight === RUNS_MAX * 4)
  // Their runs are over once they have a response, so they free their slots.
  await h.clock.advance(2 * SECOND)
  post.answer(200)
  await waitUntil(() => post.inFlight === RUNS_MAX * 4 - (RUNS_MAX - 20) * 2)
  const urls = new Set(post.sent.map(({ url }) => url))
  expect(urls.size).toBe(count)
})

test('slow endpoints share their own slots, first come first served, and are busy while one waits', async () => {
  const places = createDeliveryConcurrency({ isSlow: id => id.startsWith('slow') })
  const started: string[] = []
  const ends = new Map<string, () => void>()
  let isBusy = () => false
  const run = (id: string) =>
    places.run(id, async tooBusy => {
      started.push(id)
      isBusy = tooBusy
      await new Promise<void>(resolve => void ends.set(id, resolve))
      return id
    })
  const all = Array.from({ length: SLOW_RUNS_MAX + 2 }, (_, n) => run(`slow_${n}`))
  await drainEventLoop(60)
  expect(started).toHaveLength(SLOW_RUNS_MAX)
  expect(isBusy()).toBe(true)
  const quick = run('quick')
  await drainEventLoop(60)
  expect(started.at(-1)).toBe('quick')
  expect(isBusy()).toBe(false)
  for (const id of ['slow_5', 'slow_9']) {
    ends.get(id)?.()
    await drainEventLoop(60)
  }
  expect(started.slice(-2)).toEqual([`slow_${SLOW_RUNS_MAX}`, `slow_${SLOW_RUNS_MAX + 1}`])
  expect(isBusy()).toBe(false)
  for (const end of ends.values()) end()
  expect(await quick).toBe('quick')
  expect(await Promise.all(all)).toHaveLength(SLOW_RUNS_MAX + 2)
})
