import { describe, expect, test } from 'vitest'
import { write } from '../../src/db/database.ts'
import { HOUR, MINUTE, SECOND } from '../../src/platform/clock.ts'
import { retryDelivery } from '../../src/webhooks/delivery-store.ts'
import { RUNS_MAX } from '../../src/webhooks/start-deliveries.ts'
import type { WebhookRequest } from '../../src/webhooks/transport.ts'
import { drainEventLoop, waitUntil } from '../support/wait.ts'
import { createTestDelivery, SECRET, slowTransport } from '../support/webhook-delivery.ts'
import { verify } from '../support/webhook-signature.ts'
import { answered } from '../support/webhook-transport.ts'

describe('an event', () => {
  test('is sent within half a second, signed, with the stored bytes', async () => {
    const h = await createTestDelivery()
    await h.addWebhook()
    const deliveries = h.start()
    await drainEventLoop(60)
    const [id] = await h.addEvents()
    await h.clock.advance(SECOND / 2)
    await h.sent(1)
    const [request] = h.transport.sent as [WebhookRequest]
    const event = await h.database.db.selectFrom('event').selectAll().executeTakeFirstOrThrow()
    expect(request).toMatchObject({ url: 'https://wh-a.test/hook', body: event.body })
    expect(request.headers).toMatchObject({
      'Content-Type': 'application/json',
      'User-Agent': 'ev/1.2.3',
      'webhook-id': id,
    })
    expect(verify(request, SECRET)).toBe(true)
    await waitUntil(() => deliveries.status().delivered === 1)
    expect(await h.deliveries()).toMatchObject([
      { state: 'delivered', attempt: 1, status_code: 200, duration_ms: 84, error: null },
    ])
    expect(await h.attempts()).toMatchObject([
      { number: 1, trigger: 'scheduled', url: request.url, status_code: 200, excerpt: 'ok' },
    ])
    await h.clock.advance(HOUR)
    expect(h.transport.sent).toHaveLength(1)
  })

  test('is sent at once when the service is woken, and when it starts', async () => {
    const h = await createTestDelivery({ polls: false })
    await h.addWebhook()
    await h.addEvents()
    const deliveries = h.start()
    await h.sent(1)
    await waitUntil(() => deliveries.status().delivered === 1)
    await drainEventLoop(60)
    await h.addEvents()
    await drainEventLoop(60)
    expect(h.transport.sent).toHaveLength(1)
    deliveries.wake()
    await h.sent(2)
  })

  test('does not wait for a request of its webhook in flight', async () => {
    const h = await createTestDelivery()
    await h.addWebhook()
    await h.addEvents()
    const post = slowTransport()
    h.start({ transport: post })
    await waitUntil(() => post.sent.length === 1)
    await h.clock.advance(10 * SECOND)
    await h.addEvents()
    await h.clock.advance(SECOND / 2)
    await waitUntil(() => post.sent.length === 2)
  })

  test('without a response has the error of the transport', async () => {
    const h = await createTestDelivery()
    await h.addWebhook()
    await h.addEvents()
    h.transport.answer({ fault: 'It did not answer within 30 s.', durationMs: 30_000 })
    const deliveries = h.start()
    await waitUntil(() => deliveries.status().retried === 1)
    const expected = {
      status_code: null,
      error: 'It did not answer within 30 s.',
      duration_ms: 30_000,
    }
    expect(await h.attempts()).toMatchObject([{ ...expected, headers: null, excerpt: null }])
    expect(await h.deliveries()).toMatchObject([{ ...expected, state: 'retry_scheduled' }])
  })

  test('with another status has that status, and redirects are not followed', async () => {
    const h = await createTestDelivery()
    await h.addWebhook()
    await h.addEvents(2)
    h.transport.answer((_, nth) =>
      answered(nth === 1 ? 404 : 301, { location: 'http://169.254.1.1/' }),
    )
    const deliveries = h.start()
    await waitUntil(() => deliveries.status().retried === 2)
    const [first, second] = await h.attempts()
    expect(first?.error).toMatch(/^It answered 404\./)
    expect(second?.error).toMatch(/^It answered 301. Redirects are not followed/)
  })
})

describe('concurrent requests', () => {
  test('are limited to four per webhook', async () => {
    const h = await createTestDelivery()
    await h.addWebhook()
    await h.addEvents(10)
    const post = slowTransport()
    const deliveries = h.start({ transport: post })
    for (const sent of [4, 8, 10]) {
      await waitUntil(() => post.sent.length === sent)
      await drainEventLoop(60)
      await h.clock.advance(SECOND)
      await drainEventLoop(60)
      expect(post.sent).toHaveLength(sent)
      expect(deliveries.status().inFlight).toBe(sent === 10 ? 2 : 4)
      post.answer(200)
    }
    await waitUntil(() => deliveries.status().delivered === 10)
    expect(new Set(post.sent.map(({ body }) => body)).size).toBe(10)
  })

  test('continue only once the attempts before are durable', async () => {
    const h = await createTestDelivery()
    await h.addWebhook()
    await h.addEvents(6)
    h.start()
    await waitUntil(async () => {
      const done = (await h.deliveries()).filter(({ state }) => state === 'delivered').length
      expect(h.transport.sent.length - done).toBeLessThanOrEqual(4)
      return done === 6
    })
  })

  test('to an unresponsive or slow endpoint do not delay the others', async () => {
    const h = await createTestDelivery()
    await h.addWebhooks(50)
    await h.addEvents(20)
    const sentTo = new Map<string, number>()
    const slow = slowTransport()
    h.transport.answer(async request => {
      const to = new URL(request.url).hostname
      if (to === 'wh-0.test') return new Promise(() => {})
      if (to === 'wh-1.test') return (await slow.send(request)) as { durationMs: number }
      sentTo.set(to, (sentTo.get(to) ?? 0) + 1)
      return 200
    })
    const deliveries = h.start()
    await waitUntil(() => deliveries.status().delivered === 48 * 20)
    expect(sentTo.size).toBe(48)
    expect(slow.sent).toHaveLength(4)
    expect(h.clock.now() - Date.UTC(2026, 5, 1, 12)).toBe(0)
    for (let n = 1; n <= 5; n++) {
      slow.answer(200)
      await waitUntil(() => deliveries.status().delivered === 48 * 20 + 4 * n)
    }
    const open = (await h.deliveries()).filter(({ state }) => state !== 'delivered')
    expect(new Set(open.map(({ webhook_id }) => webhook_id))).toEqual(new Set(['wh_0']))
  })

  test('with more due webhooks than slots reach every webhook', async () => {
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
})

describe('a manually retried event', () => {
  test('is sent again in a cycle of its own if it is in flight', async () => {
    const h = await createTestDelivery()
    await h.addWebhook()
    await h.addEvents()
    const post = slowTransport()
    const deliveries = h.start({ transport: post })
    await waitUntil(() => post.inFlight === 1)
    post.answer(500)
    await waitUntil(() => deliveries.status().retried === 1)
    await drainEventLoop(60)
    await h.clock.advance(MINUTE)
    await waitUntil(() => post.inFlight === 1)
    const [{ id = '' } = {}] = await h.deliveries()
    await write(h.database, trx => retryDelivery(trx, 'wh_a', id, h.clock.now()))
    deliveries.wake()
    await drainEventLoop(60)
    expect(post.sent).toHaveLength(2)
    post.answer(500)
    await waitUntil(() => post.sent.length === 3)
    expect(await h.deliveries()).toMatchObject([
      { state: 'pending', trigger: 'manual', attempt: 0 },
    ])
    post.answer(500)
    await waitUntil(async () => (await h.attempts()).length === 3)
    const due = { state: 'retry_scheduled', attempt: 1, due_at: h.clock.now() + MINUTE }
    expect(await h.deliveries()).toMatchObject([due])
    const triggers = (await h.attempts()).map(({ trigger }) => trigger)
    expect(triggers).toEqual(['scheduled', 'scheduled', 'manual'])
    expect(new Set(post.sent.map(({ body }) => body)).size).toBe(1)
  })
})
