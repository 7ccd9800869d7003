import { Webhook } from 'standardwebhooks'
import { describe, expect, test } from 'vitest'
import { write } from '../../src/db/database.ts'
import { DAY } from '../../src/platform/clock.ts'
import { systemRandom } from '../../src/platform/random.ts'
import { listWebhooks, updateWebhook } from '../../src/webhooks/endpoint-store.ts'
import { createTestEventLimit, sendTestEvent } from '../../src/webhooks/send-test-event.ts'
import type { WebhookRequest } from '../../src/webhooks/transport/transport.ts'
import { fakeClock } from '../support/clock.ts'
import { drainEventLoop } from '../support/wait.ts'
import { createTestDelivery, SECRET, type TestDelivery } from '../support/webhook-delivery.ts'
import { answered } from '../support/webhook-transport.ts'

describe('a test event', () => {
  test('is sent at once, signed like all others, and returns its result', async () => {
    const h = await createTestDelivery({ clock: fakeClock(Date.now()) })
    await h.addWebhook()
    const outcome = await send(h)
    const [request] = h.transport.sent as [WebhookRequest]
    expect(new Webhook(SECRET).verify(request.body, request.headers)).toEqual({
      ...{ event: 'webhook.test', event_id: outcome.eventId },
      timestamp: new Date(h.clock.now()).toISOString(),
      data: { webhook_id: 'wh_a', message: 'Test event' },
    })
    expect(outcome).toEqual({
      webhook: expect.objectContaining({ id: 'wh_a' }),
      ...{ deliveryId: expect.stringMatching(/^dlv_/), eventId: expect.stringMatching(/^evt_/) },
      ...{ state: 'delivered', statusCode: 200, durationMs: 84, excerpt: 'ok', error: null },
      errorCode: null,
    })
  })

  test('of the sandbox is marked', async () => {
    const h = await createTestDelivery()
    await h.addWebhook()
    await send(h, true)
    expect(JSON.parse(h.transport.sent[0]?.body ?? '')).toMatchObject({ sandbox: true })
    await send(h, false)
    expect(JSON.parse(h.transport.sent[1]?.body ?? '')).not.toHaveProperty('sandbox')
  })

  test('is in the log with the bytes that were sent, and is not retried', async () => {
    const h = await createTestDelivery()
    await h.addWebhook()
    h.transport.answer(answered(500, { server: 'odd' }, 'oh'))
    const deliveries = h.start()
    const { deliveryId, eventId, ...result } = await send(h)
    expect(result).toMatchObject({ state: 'failed', statusCode: 500, excerpt: 'oh' })
    expect(result.error).toMatch(/500/)
    const row = { id: deliveryId, event_id: eventId, kind: 'webhook.test', trigger: 'test' }
    expect(await h.deliveries()).toMatchObject([
      { ...row, state: 'failed', attempt: 1, expires_at: h.clock.now() + 7 * DAY },
    ])
    expect(await h.attempts()).toMatchObject([
      { delivery_id: deliveryId, headers: '{"server":"odd"}' },
    ])
    const event = await h.database.db.selectFrom('event').selectAll().executeTakeFirstOrThrow()
    expect(event.body).toBe(h.transport.sent[0]?.body)
    await h.clock.advance(2 * DAY)
    deliveries.wake()
    await drainEventLoop(60)
    expect(h.transport.sent).toHaveLength(1)
  })

  test('does not affect the state of the webhook, even after a 410, and is sent to a disabled one', async () => {
    const h = await createTestDelivery()
    await h.addWebhook()
    h.transport.answer(410)
    expect(await send(h)).toMatchObject({ state: 'failed', statusCode: 410 })
    expect(await h.webhooks()).toMatchObject([
      { active: 1, disabled_reason: null, failing_since: null },
    ])
    await write(h.database, trx =>
      updateWebhook(trx, 'acc_1', 'wh_a', { active: false, now: h.clock.now() }),
    )
    h.transport.answer(200)
    expect(await send(h)).toMatchObject({ state: 'delivered' })
    expect(await h.webhooks()).toMatchObject([{ active: 0 }])
  })

  test('that cannot be signed is not sent, and returns the reason', async () => {
    const h = await createTestDelivery()
    await h.addWebhook({ secret: 'sealed elsewhere' })
    const outcome = await send(h)
    expect(outcome).toMatchObject({ state: 'failed', statusCode: null, durationMs: 0 })
    expect(outcome.error).toMatch(/EV_SECRET/)
    expect(h.transport.sent).toEqual([])
  })
})

async function send(h: TestDelivery, sandbox = false) {
  const [webhook] = await listWebhooks(h.database, 'acc_1')
  if (webhook === undefined) throw new Error('there is no webhook')
  const testLimit = createTestEventLimit()
  const services = { ...h, random: systemRandom, version: '1.2.3', testLimit }
  return sendTestEvent(services, { webhookId: webhook.id, accountId: null, sandbox })
}
