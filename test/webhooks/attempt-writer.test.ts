import { expect, test } from 'vitest'
import { yieldToEventLoop } from '../../src/platform/clock.ts'
import { createAttemptWriter } from '../../src/webhooks/attempt.ts'
import type { NewAttempt } from '../../src/webhooks/delivery-store.ts'
import { createTestDelivery } from '../support/webhook-delivery.ts'

test('attempts that end in consecutive turns of the event loop are written together, at most two hundred', async () => {
  const h = await createTestDelivery()
  await h.addWebhook()
  await h.addEvents(450)
  const commits = countCommits(h)
  const recorder = createAttemptWriter(h)
  const attempts = (await h.deliveries()).map(({ id }) => delivered(id))
  const first = attempts.slice(0, 3).map(recorder.record)
  await yieldToEventLoop()
  const next = attempts.slice(3, 6).map(recorder.record)
  expect(await Promise.all([...first, ...next])).toEqual(Array(6).fill(true))
  expect(commits.count).toBe(1)
  const others = attempts.slice(6).map(recorder.record)
  expect(await Promise.all(others)).toEqual(others.map(() => true))
  expect(commits.count).toBe(1 + 3)
  expect(await h.attempts()).toHaveLength(450)
  expect((await h.deliveries()).every(({ state }) => state === 'delivered')).toBe(true)
})

test('an attempt that cannot be written is rejected, and the others of its batch are written', async () => {
  const h = await createTestDelivery()
  await h.addWebhook()
  await h.addEvents(4)
  const recorder = createAttemptWriter(h)
  const attempts = (await h.deliveries()).map(({ id }, n) =>
    recorder.record({ ...delivered(id), durationMs: n === 2 ? Number.NaN : 1 }),
  )
  const states = (await Promise.allSettled(attempts)).map(({ status }) => status)
  expect(states).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled'])
  expect(await h.attempts()).toHaveLength(3)
})

test('attempts before the stop are written, and none after it', async () => {
  const h = await createTestDelivery()
  await h.addWebhook()
  await h.addEvents(4)
  const recorder = createAttemptWriter(h)
  const [a = '', b = '', c = '', d = ''] = (await h.deliveries()).map(({ id }) => id)
  // The second arrives while the first is being written.
  const writing = [recorder.record(delivered(a)), recorder.record(delivered(b))]
  const stopped = recorder.stop()
  const late = recorder.record(delivered(c))
  await stopped
  const later = recorder.record(delivered(d))
  expect(await Promise.all([...writing, late, later])).toEqual([true, true, false, false])
  expect(await h.attempts()).toHaveLength(2)
})

const delivered = (id: string): NewAttempt => ({
  delivery: { id, webhookId: 'wh_a', cycle: { trigger: 'scheduled', attempt: 0 } },
  next: { state: 'delivered', expiresAt: 1 },
  startedAt: 0,
  url: 'https://a.test',
  durationMs: 1,
  statusCode: 200,
  headers: {},
  excerpt: '',
  error: null,
  errorCode: null,
  disabledCode: null,
  requestHeaders: null,
})

function countCommits({ database: { db } }: Awaited<ReturnType<typeof createTestDelivery>>) {
  const commits = { count: 0 }
  const transaction = db.transaction.bind(db)
  db.transaction = () => {
    commits.count++
    return transaction()
  }
  return commits
}
