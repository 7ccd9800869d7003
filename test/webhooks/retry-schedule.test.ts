import { describe, expect, test } from 'vitest'
import { synchronizeClock } from '../../src/db/synchronize-clock.ts'
import { expire, retentions } from '../../src/maintenance/retention-job.ts'
import { DAY, HOUR, MINUTE, SECOND } from '../../src/platform/clock.ts'
import { listDueAlerts } from '../../src/webhooks/alert-store.ts'
import { drainEventLoop, waitUntil } from '../support/wait.ts'
import { createTestDelivery, type TestDelivery } from '../support/webhook-delivery.ts'
import { answered } from '../support/webhook-transport.ts'

/** Times of the six attempts, counted from the event. */
const TIMES = [0, 1, 6, 36, 156, 1_596].map(minutes => minutes * MINUTE)

describe('the schedule of an undeliverable event', () => {
  test('is six attempts at their exact times, polled or not; then it has failed', async () => {
    const h = await createTestDelivery({ polls: false })
    await h.addWebhook()
    await h.addEvents()
    const begin = h.clock.now()
    h.transport.answer(500)
    h.start()
    for (const [n, at] of TIMES.entries()) {
      await h.clock.advance(at - (TIMES[n - 1] ?? 0) - (n === 0 ? 0 : 1))
      await drainEventLoop(60)
      if (n > 0) {
        expect(h.transport.sent).toHaveLength(n)
        await h.clock.advance(1)
      }
      await h.sent(n + 1)
      await waitUntil(async () => (await h.attempts()).length === n + 1)
      expect((await h.deliveries())[0]).toMatchObject({ attempt: n + 1 })
    }
    const started = (await h.attempts()).map(row => row.started_at - begin)
    expect(started).toEqual(TIMES)
    expect(await h.deliveries()).toMatchObject([
      { state: 'failed', expires_at: h.clock.now() + 7 * DAY },
    ])
    await h.clock.advance(30 * DAY)
    await drainEventLoop(60)
    expect(h.transport.sent).toHaveLength(6)
  })

  test('of the sandbox takes half a minute with fast sandbox retries', async () => {
    const h = await createTestDelivery({ polls: false })
    await h.addWebhook()
    await h.addEvents(1, { sandbox: true })
    const begin = h.clock.now()
    h.transport.answer(500)
    h.start({ fastSandboxRetries: true })
    const delays = [0, 1, 2, 4, 8, 16]
    for (const [n, seconds] of delays.entries()) {
      await h.clock.advance(seconds * SECOND)
      await waitUntil(async () => (await h.attempts()).length === n + 1)
    }
    const started = (await h.attempts()).map(row => (row.started_at - begin) / SECOND)
    expect(started).toEqual([0, 1, 3, 7, 15, 31])
    expect(await h.deliveries()).toMatchObject([{ state: 'failed' }])
  })

  test('counts each delay from the end of the attempt before', async () => {
    const h = await createTestDelivery({ polls: false })
    await h.addWebhook()
    await h.addEvents()
    h.transport.answer(async () => {
      await h.clock.advance(20 * SECOND)
      return 500
    })
    h.start()
    await waitUntil(async () => (await h.attempts()).length === 1)
    const [delivery] = await h.deliveries()
    expect((delivery?.due_at ?? 0) - h.clock.now()).toBe(MINUTE)
  })

  test('sends the same bytes and event each time, with a new signature', async () => {
    const h = await createTestDelivery({ polls: false })
    await h.addWebhook()
    const [eventId] = await h.addEvents()
    h.transport.answer(500)
    h.start()
    await eachAttempt(h, async () => {})
    const [first, ...others] = h.transport.sent
    expect(others).toHaveLength(5)
    for (const request of others) expect(request.body).toBe(first?.body)
    expect(new Set(h.transport.sent.map(({ headers }) => headers['webhook-id']))).toEqual(
      new Set([eventId]),
    )
    expect(new Set(h.transport.sent.map(({ headers }) => headers['X-EV-Signature'])).size).toBe(1)
    expect(new Set(h.transport.sent.map(({ headers }) => headers['webhook-timestamp'])).size).toBe(
      6,
    )
  })

  test('ends with one alert and one log line, and is deleted after 7 days', async () => {
    const h = await createTestDelivery({ polls: false })
    await h.addWebhook({ url: 'https://hook.test/?token=of-the-receiver' })
    const [eventId] = await h.addEvents()
    h.transport.answer(500)
    h.start()
    await eachAttempt(h, async n => {
      expect(await listDueAlerts(h.database, h.clock.now())).toHaveLength(n === 6 ? 1 : 0)
    })
    expect(await listDueAlerts(h.database, h.clock.now())).toMatchObject([
      { webhookId: 'wh_a', failedEvents: 1, lastError: expect.stringContaining('500') },
    ])
    const warnings = h.lines.filter(({ level }) => level === 'warn')
    expect(warnings).toEqual([
      {
        level: 'warn',
        message: 'webhook delivery failed',
        fields: {
          webhook: 'wh_a',
          event: eventId,
          status: 500,
          attempts: 6,
          why: expect.stringMatching(/^It answered 500/),
        },
      },
    ])
    expect(JSON.stringify(h.lines)).not.toContain('of-the-receiver')
    await h.clock.advance(7 * DAY - 1)
    await cleanUp(h)
    expect(await h.deliveries()).toHaveLength(1)
    await h.clock.advance(1)
    await cleanUp(h)
    expect(await h.deliveries()).toEqual([])
    expect(await h.attempts()).toEqual([])
    expect(await h.database.db.selectFrom('event').selectAll().execute()).toEqual([])
  })

  test('continues on time after a restart, found by the poll', async () => {
    const h = await createTestDelivery()
    await h.addWebhook()
    await h.addEvents()
    h.transport.answer(500)
    const before = h.start()
    await waitUntil(async () => (await h.attempts()).length === 1)
    await before.stop()
    await h.clock.advance(30 * SECOND)
    h.start()
    await drainEventLoop(60)
    await h.clock.advance(30 * SECOND - 1)
    await drainEventLoop(60)
    expect(h.transport.sent).toHaveLength(1)
    await h.clock.advance(SECOND / 2)
    await h.sent(2)
  })

  test('is not affected by a sleep of the machine', async () => {
    const h = await createTestDelivery({ polls: false })
    await h.addWebhook()
    await h.addEvents()
    h.transport.answer(500)
    const deliveries = h.start()
    await waitUntil(async () => (await h.attempts()).length === 1)
    await drainEventLoop(60)
    h.clock.suspend(10 * DAY)
    await synchronizeClock(h.database)
    deliveries.wake()
    await waitUntil(async () => (await h.attempts()).length === 2)
    expect(await h.webhooks()).toMatchObject([{ active: 1 }])
  })

  test.each([
    ['an hour', HOUR],
    ['a day', DAY],
    ['ten years', 3_652 * DAY],
    ['minus an hour', -HOUR],
    ['minus ten years', -3_652 * DAY],
  ])('continues on time although the wall clock is set back by %s', async (_, jumpMs) => {
    const h = await createTestDelivery()
    await h.addWebhook()
    await h.addEvents()
    h.transport.answer(500)
    h.start()
    await waitUntil(async () => (await h.attempts()).length === 1)
    await drainEventLoop(60)
    // This one is not found before the clock has changed.
    await h.addEvents()
    h.clock.jump(-jumpMs)
    await h.clock.advance(SECOND / 2)
    await h.sent(2)
    await waitUntil(async () => (await h.attempts()).length === 2)
    await h.clock.advance(MINUTE - SECOND)
    await drainEventLoop(60)
    expect(h.transport.sent).toHaveLength(2)
    await h.clock.advance(SECOND)
    await waitUntil(async () => (await h.attempts()).length === 4)
  })
})

describe('a Retry-After', () => {
  const RETRY_DATE = new Date(Date.UTC(2026, 5, 1, 12, 30)).toUTCString()
  test.each<[header: string, waitedMs: number]>([
    ['600', 10 * MINUTE],
    ['10', MINUTE], // shorter than ours
    [RETRY_DATE, 30 * MINUTE],
    ['soon', MINUTE],
    ['-600', MINUTE],
    ['99999999', DAY], // the maximum delay
  ])('of “%s” delays the event by %i ms', async (header, waitedMs) => {
    const h = await createTestDelivery({ polls: false })
    await h.addWebhook()
    await h.addEvents()
    h.transport.answer(answered(500, { 'retry-after': header }))
    h.start()
    await waitUntil(async () => (await h.attempts()).length === 1)
    await drainEventLoop(60)
    await h.clock.advance(waitedMs - 1)
    await drainEventLoop(60)
    expect(h.transport.sent).toHaveLength(1)
    await h.clock.advance(1)
    await h.sent(2)
  })
})

/** Advances through all six attempts, each at its time. */
async function eachAttempt(h: TestDelivery, look: (n: number) => Promise<void>): Promise<void> {
  for (let n = 1; n <= 6; n++) {
    await waitUntil(async () => (await h.attempts()).length === n)
    await drainEventLoop(60)
    await look(n)
    const [delivery] = await h.deliveries()
    if (n < 6) await h.clock.advance((delivery?.due_at ?? 0) - h.clock.now())
  }
}

/** Runs retention, as the service does every hour. */
async function cleanUp({ database, clock }: TestDelivery): Promise<void> {
  const { signal } = new AbortController()
  for (const old of retentions(clock.now(), clock.now(), 90 * DAY))
    await expire(database, old, signal)
}
