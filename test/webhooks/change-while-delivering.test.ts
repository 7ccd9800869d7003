import { describe, expect, test } from 'vitest'
import { write } from '../../src/db/database.ts'
import { HOUR, SECOND } from '../../src/platform/clock.ts'
import { deleteWebhook, updateWebhook } from '../../src/webhooks/endpoint-store.ts'
import { drainEventLoop, waitUntil } from '../support/wait.ts'
import {
  createTestDelivery,
  slowTransport,
  type TestDelivery,
} from '../support/webhook-delivery.ts'
import { answered } from '../support/webhook-transport.ts'

describe('a webhook that', () => {
  test('responds 429 or 503 with a delay gets nothing until then, with all its deliveries', async () => {
    for (const status of [429, 503]) {
      const h = await createTestDelivery({ polls: true })
      await h.addWebhook()
      await h.addWebhook({ id: 'wh_b' })
      await h.addEvents()
      h.transport.answer(({ url }) =>
        url.includes('wh-a') ? answered(status, { 'retry-after': '20' }) : 200,
      )
      const deliveries = h.start()
      await waitUntil(() => deliveries.status().retried === 1)
      h.transport.answer(200)
      await h.addEvents()
      await h.clock.advance(20 * SECOND - 1)
      await drainEventLoop(60)
      expect(to(h, 'wh-a')).toHaveLength(1)
      expect(to(h, 'wh-b')).toHaveLength(2)
      // Found by the next poll.
      await h.clock.advance(SECOND / 2)
      await waitUntil(() => to(h, 'wh-a').length === 2)
    }
  })

  test('asks for days gets requests again after an hour, except for the event of that response', async () => {
    const h = await createTestDelivery()
    await h.addWebhook()
    await h.addEvents()
    h.transport.answer(answered(503, { 'retry-after': '999999' }))
    const deliveries = h.start()
    await waitUntil(() => deliveries.status().retried === 1)
    h.transport.answer(200)
    const [event] = await h.addEvents()
    await h.clock.advance(HOUR - 1)
    await drainEventLoop(60)
    expect(h.transport.sent).toHaveLength(1)
    await h.clock.advance(SECOND / 2)
    await h.sent(2)
    expect(h.transport.sent[1]?.headers['webhook-id']).toBe(event)
  })

  test('asks for an hour and then gets a new URL is sent requests there at once', async () => {
    const h = await createTestDelivery()
    await h.addWebhook()
    await h.addEvents()
    h.transport.answer(answered(503, { 'retry-after': '3600' }))
    const deliveries = h.start()
    await waitUntil(() => deliveries.status().retried === 1)
    h.transport.answer(200)
    await h.addEvents()
    await h.clock.advance(SECOND)
    await drainEventLoop(60)
    expect(h.transport.sent).toHaveLength(1)
    const patch = { url: 'https://wh-a.test/fixed', now: h.clock.now() }
    await write(h.database, trx => updateWebhook(trx, 'acc_1', 'wh_a', patch))
    await h.clock.advance(SECOND / 2)
    await h.sent(2)
    expect(h.transport.sent[1]?.url).toBe('https://wh-a.test/fixed')
  })

  test('asks for nothing, or with another status, is not delayed', async () => {
    for (const answer of [answered(503), answered(500, { 'retry-after': '600' })]) {
      const h = await createTestDelivery()
      await h.addWebhook()
      await h.addEvents()
      h.transport.answer(answer)
      const deliveries = h.start()
      await waitUntil(() => deliveries.status().retried === 1)
      await h.addEvents()
      await h.clock.advance(SECOND)
      await h.sent(2)
    }
  })

  test('is deleted gets nothing more, with retries due and with a request in flight', async () => {
    const h = await createTestDelivery()
    await h.addWebhook()
    await h.addEvents(2)
    const post = slowTransport()
    const deliveries = h.start({ transport: post })
    await waitUntil(() => post.inFlight === 2)
    post.answer(500)
    await waitUntil(() => deliveries.status().retried === 2)
    await h.addEvents()
    await h.clock.advance(SECOND)
    await waitUntil(() => post.inFlight === 1)
    await write(h.database, trx => deleteWebhook(trx, 'acc_1', 'wh_a', h.clock.now()))
    post.answer(500)
    await drainEventLoop(60)
    await h.clock.advance(48 * HOUR)
    await drainEventLoop(60)
    expect(post.sent).toHaveLength(3)
    expect(h.lines.filter(({ level }) => level === 'error')).toEqual([])
  })

  test('is disabled gets nothing, and open deliveries continue when it is enabled', async () => {
    const h = await createTestDelivery()
    await h.addWebhook()
    await h.addEvents()
    h.transport.answer(500)
    const deliveries = h.start()
    await waitUntil(() => deliveries.status().retried === 1)
    const change = (active: boolean) =>
      write(h.database, trx => updateWebhook(trx, 'acc_1', 'wh_a', { active, now: h.clock.now() }))
    await change(false)
    await h.clock.advance(HOUR)
    await drainEventLoop(60)
    expect(h.transport.sent).toHaveLength(1)
    h.transport.answer(200)
    await change(true)
    deliveries.wake()
    await waitUntil(() => deliveries.status().delivered === 1)
    expect(await h.deliveries()).toMatchObject([{ state: 'delivered', attempt: 2 }])
  })

  test('gets another URL is sent the remaining deliveries there', async () => {
    const h = await createTestDelivery()
    await h.addWebhook()
    await h.addEvents(6)
    const post = slowTransport()
    h.start({ transport: post })
    await waitUntil(() => post.inFlight === 4)
    const url = 'https://elsewhere.test/'
    await write(h.database, trx => updateWebhook(trx, 'acc_1', 'wh_a', { url, now: h.clock.now() }))
    post.answer(200)
    await waitUntil(() => post.inFlight === 2)
    expect(post.sent.slice(4).map(request => request.url)).toEqual([url, url])
  })

  test('responds 410 is disabled at once: that event has failed, and the others wait', async () => {
    const h = await createTestDelivery()
    await h.addWebhook()
    await h.addEvents(2)
    const post = slowTransport()
    const deliveries = h.start({ transport: post })
    await waitUntil(() => post.inFlight === 2)
    await h.addEvents()
    post.answer(410)
    await waitUntil(() => deliveries.status().failed === 2)
    await drainEventLoop(60)
    await h.clock.advance(HOUR)
    await drainEventLoop(60)
    expect(post.sent).toHaveLength(2)
    expect((await h.deliveries()).map(({ state }) => state)).toEqual([
      'failed',
      'failed',
      'pending',
    ])
    expect(await h.webhooks()).toMatchObject([
      { active: 0, disabled_reason: expect.stringMatching(/410 Gone/), disabled_code: 'gone' },
    ])
    expect(h.lines.filter(({ level }) => level === 'warn').map(({ message }) => message)).toEqual(
      expect.arrayContaining(['webhook endpoint disabled', 'webhook delivery failed']),
    )
  })

  test('fails for 5 days is disabled with the next attempt', async () => {
    const h = await createTestDelivery({ polls: false })
    await h.addWebhook()
    h.transport.answer(500)
    const deliveries = h.start()
    const attemptAfter = async (ms: number) => {
      await h.clock.advance(ms)
      await drainEventLoop(60)
      await h.addEvents()
      const before = h.transport.sent.length
      deliveries.wake()
      await waitUntil(() => h.transport.sent.length > before)
      await drainEventLoop(60)
    }
    await attemptAfter(0)
    for (let day = 1; day < 5; day++) await attemptAfter(24 * HOUR)
    await attemptAfter(23 * HOUR)
    expect(await h.webhooks()).toMatchObject([
      { active: 1, failing_since: Date.UTC(2026, 5, 1, 12) },
    ])
    await h.clock.advance(HOUR)
    await h.addEvents()
    deliveries.wake()
    await waitUntil(async () => (await h.webhooks())[0]?.active === 0)
    expect(await h.webhooks()).toMatchObject([
      { active: 0, disabled_reason: expect.stringMatching(/5 days/), disabled_code: 'failing' },
    ])
  })

  test('failed for 5 days, as stored, has an hour after a start and after a success', async () => {
    const h = await createTestDelivery({ polls: false })
    await h.addWebhook()
    const since = h.clock.now() - 6 * 24 * HOUR
    const deliveries = h.start()
    const attempt = async (status: number) => {
      await h.database.db.updateTable('webhook').set({ failing_since: since }).execute()
      h.transport.answer(status)
      await h.addEvents()
      const before = (await h.attempts()).length
      deliveries.wake()
      await waitUntil(async () => (await h.attempts()).length > before)
      await drainEventLoop(60)
      return (await h.webhooks())[0]?.active
    }
    expect(await attempt(500)).toBe(1)
    h.transport.answer(500)
    await h.clock.advance(HOUR - 1)
    await drainEventLoop(60)
    expect(await attempt(200)).toBe(1)
    await h.clock.advance(1)
    expect(await attempt(500)).toBe(1)
    await h.clock.advance(HOUR - 1)
    await drainEventLoop(60)
    expect(await attempt(500)).toBe(1)
    await h.clock.advance(1)
    expect(await attempt(500)).toBe(0)
  })

  test('responds once in the 5 days is not disabled', async () => {
    const h = await createTestDelivery({ polls: false })
    await h.addWebhook()
    h.transport.answer((_, nth) => (nth === 4 ? 204 : 500))
    const deliveries = h.start()
    for (let day = 0; day < 8; day++) {
      await h.addEvents()
      const before = h.transport.sent.length
      deliveries.wake()
      await waitUntil(() => h.transport.sent.length > before)
      await drainEventLoop(60)
      expect((await h.webhooks())[0]?.active).toBe(1)
      if (h.transport.sent.length >= 4 && day >= 5) break
      await h.clock.advance(23 * HOUR)
      await drainEventLoop(60)
    }
  })
})

const to = (h: TestDelivery, host: string) =>
  h.transport.sent.filter(({ url }) => url.includes(host))
