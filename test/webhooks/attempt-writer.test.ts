import { expect, test } from 'vitest'
import { yieldToEventLoop } from '../../src/platform/clock.ts'
import { createAttemptWriter } from '../../src/webhooks/attempt.ts'
import type { NewAttempt } from '../../src/webhooks/attempt-store.ts'
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
