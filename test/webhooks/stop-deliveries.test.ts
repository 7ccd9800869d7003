import { describe, expect, test } from 'vitest'
import type { Database } from '../../src/db/database.ts'
import { MINUTE, SECOND } from '../../src/platform/clock.ts'
import { drainEventLoop, waitUntil } from '../support/wait.ts'
import { createTestDelivery, slowTransport } from '../support/webhook-delivery.ts'

describe('a process that dies', () => {
  test('during a request leaves its event to the next one: the same event, the same bytes', async () => {
    const h = await createTestDelivery()
    await h.addWebhook()
    const [id] = await h.addEvents()
    const dyingTransport = slowTransport()
    h.start({ transport: dyingTransport })
    await waitUntil(() => dyingTransport.inFlight === 1)
    const next = h.start()
    await h.sent(1)
    await waitUntil(() => next.status().delivered === 1)
    expect(h.transport.sent[0]?.body).toBe(dyingTransport.sent[0]?.body)
    expect(h.transport.sent[0]?.headers['webhook-id']).toBe(id)
    expect(await h.deliveries()).toMatchObject([{ state: 'delivered', attempt: 1 }])
  })

  test('repeats at most the requests in flight', async () => {
    const h = await createTestDelivery()
    await h.addWebhook()
    await h.addEvents(20)
    const dyingTransport = slowTransport()
    const before = h.start({ transport: dyingTransport })
    for (const done of [4, 8]) {
      await waitUntil(() => dyingTransport.inFlight === 4)
      dyingTransport.answer(200)
      await waitUntil(() => before.status().delivered === done)
    }
    await waitUntil(() => dyingTransport.inFlight === 4)
    const next = h.start()
    await waitUntil(() => next.status().delivered === 12)
    const twice = h.transport.sent.filter(({ body }) =>
      dyingTransport.sent.some(one => one.body === body),
    )
    expect(twice.map(({ body }) => body)).toEqual(
      dyingTransport.sent.slice(8).map(({ body }) => body),
    )
  })
})

describe('stopping', () => {
  test('starts no requests, and waits for those in flight', async () => {
    const h = await createTestDelivery()
    await h.addWebhook()
    await h.addEvents(6)
    const post = slowTransport()
    const deliveries = h.start({ transport: post })
    await waitUntil(() => post.inFlight === 4)
    let isDone = false
    const stopped = deliveries.stop().then(() => {
      isDone = true
    })
    await h.clock.advance(4 * SECOND)
    await drainEventLoop(60)
    expect(isDone).toBe(false)
    post.answer(200)
    await stopped
    expect(post.sent).toHaveLength(4)
    expect((await h.deliveries()).filter(({ state }) => state === 'delivered')).toHaveLength(4)
  })

  test.each([1, 2])('during poll %i sends nothing of what was found', async nth => {
    const h = await createTestDelivery()
    await h.addWebhook()
    await h.addEvents()
    let polls = 0
    const database: Database = {
      ...h.database,
      get reader() {
        // The second query loads the due deliveries.
        if (++polls === nth) queueMicrotask(() => void deliveries.stop())
        return h.database.reader
      },
    }
    const deliveries = h.start({ database })
    await drainEventLoop(60)
    await deliveries.stop()
    expect(polls).toBeGreaterThanOrEqual(nth)
    expect(h.transport.sent).toEqual([])
  })

  test('aborts requests without a response after five seconds: no attempt is written, and they are sent again', async () => {
    const h = await createTestDelivery()
    await h.addWebhook()
    await h.addEvents()
    const post = slowTransport()
    const deliveries = h.start({ transport: post })
    await waitUntil(() => post.inFlight === 1)
    const stopped = deliveries.stop()
    await drainEventLoop(60)
    await h.clock.advance(5 * SECOND)
    await stopped
    post.answer(200)
    await drainEventLoop(60)
    expect(await h.attempts()).toEqual([])
    expect(await h.deliveries()).toMatchObject([{ state: 'pending', attempt: 0 }])
    expect(h.clock.pending).toBe(0)
    const next = h.start()
    await waitUntil(() => next.status().delivered === 1)
  })

  test('can be called twice and without work, and leaves no timer', async () => {
    const h = await createTestDelivery()
    const deliveries = h.start()
    await drainEventLoop(60)
    await Promise.all([deliveries.stop(), deliveries.stop()])
    deliveries.wake()
    await drainEventLoop(60)
    expect(h.clock.pending).toBe(0)
    await h.addWebhook()
    await h.addEvents()
    await h.clock.advance(MINUTE)
    await drainEventLoop(60)
    expect(h.transport.sent).toEqual([])
  })
})

describe('a full disk', () => {
  test('delays the write of an attempt: nothing is sent again, and the log has a line per second', async () => {
    const h = await createTestDelivery()
    await h.addWebhook()
    await h.addEvents(6)
    const disk = fullDisk(h.database)
    const deliveries = h.start()
    await h.sent(4)
    await drainEventLoop(60)
    await h.clock.advance(10 * SECOND)
    await drainEventLoop(60)
    expect(h.transport.sent).toHaveLength(4)
    expect(deliveries.status()).toMatchObject({ delivered: 0, inFlight: 0 })
    const logged = h.lines.filter(
      ({ message }) => message === 'delivery attempts could not be written; will retry',
    )
    expect(logged.length).toBeGreaterThanOrEqual(10)
    expect(logged.length).toBeLessThanOrEqual(12)
    disk.isFull = false
    await h.clock.advance(SECOND)
    await waitUntil(() => deliveries.status().delivered === 6)
    expect(h.transport.sent).toHaveLength(6)
    expect((await h.attempts()).length).toBe(6)
  })

  test('does not delay a stop', async () => {
    const h = await createTestDelivery()
    await h.addWebhook()
    await h.addEvents()
    const disk = fullDisk(h.database)
    const deliveries = h.start()
    await h.sent(1)
    await drainEventLoop(60)
    const stopped = deliveries.stop()
    await h.clock.advance(5 * SECOND)
    await stopped
    disk.isFull = false
    await drainEventLoop(60)
    expect(await h.attempts()).toEqual([])
    expect(await h.deliveries()).toMatchObject([{ state: 'pending' }])
    expect(h.clock.pending).toBe(0)
  })

  test('that cannot be read either is polled again', async () => {
    const h = await createTestDelivery()
    await h.addWebhook()
    await h.addEvents()
    const { reader } = h.database
    let isBroken = true
    const database: Database = {
      ...h.database,
      get reader() {
        if (isBroken) throw Object.assign(new Error('disk I/O error'), { code: 'SQLITE_IOERR' })
        return reader
      },
    }
    h.start({ database })
    await drainEventLoop(60)
    await h.clock.advance(3 * SECOND)
    await drainEventLoop(60)
    expect(h.transport.sent).toEqual([])
    const logged = h.lines.filter(({ message }) => message === 'delivery poll failed')
    expect(logged.length).toBe(1)
    isBroken = false
    await h.clock.advance(2 * SECOND)
    await h.sent(1)
  })
})

describe('an error inside ev', () => {
  test('in one attempt does not affect others, and does not send the same event in a loop', async () => {
    const h = await createTestDelivery()
    await h.addWebhook({ id: 'wh_a' })
    await h.addWebhook({ id: 'wh_b' })
    await h.addEvents(3)
    h.transport.answer(({ url }) => {
      if (!url.includes('wh-a')) return 200
      // A value that no transport returns and no column accepts.
      return { fault: 'odd', durationMs: Number.NaN }
    })
    const deliveries = h.start()
    await waitUntil(() => deliveries.status().delivered === 3)
    await drainEventLoop(60)
    const count = () => h.transport.sent.filter(({ url }) => url.includes('wh-a')).length
    expect(count()).toBe(3)
    await h.clock.advance(MINUTE - 1)
    await drainEventLoop(60)
    expect(count()).toBe(3)
    const errors = h.lines.filter(({ level }) => level === 'error')
    expect(errors.length).toBeGreaterThan(0)
    expect(errors[0]?.fields).toMatchObject({ webhook: 'wh_a' })
    await h.clock.advance(SECOND)
    await waitUntil(() => count() > 3)
  })
})

/** Fails like a full disk while `isFull`. */
function fullDisk(database: Database) {
  const disk = { isFull: true }
  const { db } = database
  const transaction = db.transaction.bind(db)
  db.transaction = () => {
    if (disk.isFull) throw Object.assign(new Error('disk is full'), { code: 'SQLITE_FULL' })
    return transaction()
  }
  return disk
}
