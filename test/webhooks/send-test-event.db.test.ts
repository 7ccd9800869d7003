import { Webhook } from 'standardwebhooks'
import { describe, expect, test } from 'vitest'
import { write } from '../../src/db/database.ts'
import { DAY } from '../../src/platform/clock.ts'
import { systemRandom } from '../../src/platform/random.ts'
import { patchHeaders } from '../../src/webhooks/custom-headers.ts'
import { listWebhooks, updateWebhook } from '../../src/webhooks/endpoint-store.ts'
import { buildEventExample, type SentKind, TEST_KIND } from '../../src/webhooks/event-types.ts'
import { createTestEventLimit, sendTestEvent } from '../../src/webhooks/send-test-event.ts'
import type { WebhookRequest } from '../../src/webhooks/transport.ts'
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
      event: 'webhook.test',
      event_id: outcome.eventId,
      timestamp: new Date(h.clock.now()).toISOString(),
      data: { webhook_id: 'wh_a', message: 'Test event' },
    })
    expect(outcome).toEqual({
      webhook: expect.objectContaining({ id: 'wh_a' }),
      kind: 'webhook.test',
      deliveryId: expect.stringMatching(/^dlv_/),
      eventId: expect.stringMatching(/^evt_/),
      state: 'delivered',
      statusCode: 200,
      durationMs: 84,
      excerpt: 'ok',
      error: null,
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

  test('can be an example of any event type, marked as simulated', async () => {
    const h = await createTestDelivery()
    await h.addWebhook()
    const { eventId } = await send(h, false, 'batch.failed')
    expect(JSON.parse(h.transport.sent[0]?.body ?? '')).toEqual({
      event: 'batch.failed',
      event_id: eventId,
      sandbox: true,
      data: buildEventExample('batch.failed'),
      timestamp: new Date(h.clock.now()).toISOString(),
    })
    expect(await h.deliveries()).toMatchObject([{ kind: 'batch.failed', trigger: 'test' }])
  })

  test('has the custom headers, whose values are nowhere in the log', async () => {
    const h = await createTestDelivery({ clock: fakeClock(Date.now()) })
    const headers = patchHeaders(h.secretBox, {}, { 'X-Token': 'a secret token' })
    await h.addWebhook({ headers })
    const echo = (request: WebhookRequest) =>
      answered(
        200,
        { 'x-echo': request.headers['X-Token'] ?? '' },
        `got ${request.headers['X-Token']}`,
      )
    h.transport.answer(echo)
    await send(h)
    const [request] = h.transport.sent as [WebhookRequest]
    expect(request.headers['X-Token']).toBe('a secret token')
    expect(new Webhook(SECRET).verify(request.body, request.headers)).toBeDefined()
    const [attempt] = await h.attempts()
    expect(JSON.parse(attempt?.request_headers ?? '')).toEqual({
      ...request.headers,
      'X-Token': '[hidden]',
    })
    expect(attempt).toMatchObject({ excerpt: 'got [hidden]', headers: '{"x-echo":"[hidden]"}' })
    expect(JSON.stringify(h.lines)).not.toContain('a secret token')
  })

  test('is not sent without a custom header that cannot be decrypted', async () => {
    const h = await createTestDelivery()
    await h.addWebhook({ headers: { 'X-Token': 'encrypted elsewhere' } })
    const outcome = await send(h)
    expect(outcome).toMatchObject({ state: 'failed', errorCode: 'secret_unreadable' })
    expect(outcome.error).toMatch(/custom headers/)
    expect(h.transport.sent).toEqual([])
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

async function send(h: TestDelivery, sandbox = false, kind: SentKind = TEST_KIND) {
  const [webhook] = await listWebhooks(h.database, 'acc_1')
  if (webhook === undefined) throw new Error('there is no webhook')
  const testLimit = createTestEventLimit()
  const services = { ...h, random: systemRandom, version: '1.2.3', testLimit }
  return sendTestEvent(services, { webhookId: webhook.id, accountId: null, sandbox, kind })
}
