import { createHmac } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { describe, expect, test } from 'vitest'
import { DAY } from '../../../src/platform/clock.ts'
import { createSecretBox } from '../../../src/platform/secret-box.ts'
import { EVENT_KINDS } from '../../../src/webhooks/event-types.ts'
import { codeOf } from '../../support/guarded-route.ts'
import { countedRandom } from '../../support/random.ts'
import { waitUntil } from '../../support/wait.ts'
import { endpoint, onlyDelivery } from '../../support/webhook-endpoint.ts'
import { answered } from '../../support/webhook-transport.ts'

const POST = { method: 'POST' }
const SANDBOX = { 'X-EV-Sandbox': 'true' }

describe('a test event', () => {
  test('is sent once, at once, whatever the endpoint subscribed to, and its result is returned', async () => {
    const { request, path, id, post } = await endpoint()
    const response = await request(`${path}/test`, POST)
    expect(response.status).toBe(200)
    const { data } = (await response.json()) as { data: { event_id: string } }
    expect(data).toEqual({
      delivery_id: expect.stringMatching(/^dlv_[a-z0-9]+$/),
      event_id: expect.stringMatching(/^evt_[a-z0-9]+$/),
      event: 'webhook.test',
      status: 'delivered',
      status_code: 200,
      duration_ms: 84,
      response_excerpt: 'ok',
      error: null,
      error_code: null,
    })
    expect(post.sent.map(({ url }) => url)).toEqual(['https://app.test/hook'])
    expect(JSON.parse(post.sent[0]?.body ?? '')).toEqual({
      event: 'webhook.test',
      event_id: data.event_id,
      timestamp: '2026-06-01T12:00:00.000Z',
      data: { webhook_id: id, message: 'Test event' },
    })
  })

  test.each(EVENT_KINDS)('can be the documented example of %s', async event => {
    const { json, path, post } = await endpoint({ events: ['batch.completed'] })
    const { data } = await json(`${path}/test`, { body: { event } })
    expect(data).toMatchObject({ event, status: 'delivered' })
    const { data: catalogue } = (await json('/v1/webhooks/events')) as {
      data: { events: { event: string; example: { data: object } }[] }
    }
    const example = catalogue.events.find(one => one.event === event)?.example
    expect(JSON.parse(post.sent[0]?.body ?? '')).toMatchObject({
      event,
      sandbox: true,
      data: example?.data,
    })
  })

  test('of an unknown type is refused', async () => {
    const { request, path, post } = await endpoint()
    const response = await request(`${path}/test`, { body: { event: 'batch.done' } })
    expect([response.status, await codeOf(response)]).toEqual([400, 'invalid_request'])
    expect(post.sent).toEqual([])
  })

  test('is signed with the secret of the endpoint in both headers', async () => {
    const { request, path, secret, post, clock } = await endpoint()
    await request(`${path}/test`, POST)
    const [{ body = '', headers = {} } = {}] = post.sent
    expect(headers['X-EV-Signature']).toBe(createHmac('sha256', secret).update(body).digest('hex'))
    const { event_id } = JSON.parse(body) as { event_id: string }
    const at = new Date(clock.now())
    expect(headers).toMatchObject({
      'webhook-id': event_id,
      'webhook-timestamp': String(clock.now() / 1_000),
      'webhook-signature': new Webhook(secret).sign(event_id, at, body),
    })
  })

  test('of the sandbox is marked in the payload', async () => {
    const { request, path, post } = await endpoint()
    await request(`${path}/test`, { ...POST, headers: SANDBOX })
    await request(`${path}/test`, POST)
    const bodies = post.sent.map(({ body }) => JSON.parse(body) as object)
    expect(bodies[0]).toMatchObject({ event: 'webhook.test', sandbox: true })
    expect(bodies[1]).not.toHaveProperty('sandbox')
  })

  test('of the sandbox is kept for a day, a live one for seven', async () => {
    const { request, path, database, clock } = await endpoint()
    for (const headers of [SANDBOX, {}]) await request(`${path}/test`, { ...POST, headers })
    const kept = await database.db.selectFrom('delivery').select('expires_at').execute()
    const days = kept.map(({ expires_at }) => ((expires_at ?? 0) - clock.now()) / DAY)
    expect(days.sort()).toEqual([1, 7])
  })

  test('of the sandbox is a real request: the limits apply to it', async () => {
    const { request, path, addKey, post } = await endpoint()
    const key = await addKey({ rateLimitPerMinute: 2 })
    const ask = () => request(`${path}/test`, { ...POST, key, headers: SANDBOX })
    for (let n = 0; n < 2; n++) expect((await ask()).status).toBe(200)
    const refused = await ask()
    expect([refused.status, await codeOf(refused)]).toEqual([429, 'rate_limit'])
    expect(post.sent).toHaveLength(2)
  })

  test.each([
    [
      'an error',
      answered(500, {}, 'oops'),
      { status_code: 500, error_code: 'http_status', response_excerpt: 'oops' },
    ],
    ['a redirect', answered(301), { status_code: 301, error_code: 'redirect' }],
    ['410 Gone', answered(410), { status_code: 410, error_code: 'http_status' }],
    [
      'nothing',
      {
        fault: 'It did not answer within 30 s.',
        faultCode: 'timeout',
        durationMs: 30_000,
      } as const,
      {
        status_code: null,
        response_excerpt: null,
        duration_ms: 30_000,
        error: 'It did not answer within 30 s.',
        error_code: 'timeout',
      },
    ],
  ])(
    'that is answered with %s has failed: returns 200, and is not retried',
    async (_, receipt, expected) => {
      const fixture = await endpoint()
      fixture.post.answer(receipt)
      const response = await fixture.request(`${fixture.path}/test`, POST)
      expect(response.status).toBe(200)
      expect(await response.json()).toMatchObject({
        data: { status: 'failed', error: expect.stringMatching(/./), ...expected },
      })
      expect(await onlyDelivery(fixture)).toMatchObject({ status: 'failed', next_attempt_at: null })
      expect((await fixture.json(fixture.path)).data).toMatchObject({
        active: true,
        failing_since: null,
        disabled_reason: null,
      })
    },
  )

  test('is in the log, as a test', async () => {
    const fixture = await endpoint()
    const { data } = (await fixture.json(`${fixture.path}/test`, POST)) as {
      data: { delivery_id: string; event_id: string }
    }
    expect(await onlyDelivery(fixture)).toEqual({
      id: data.delivery_id,
      webhook_id: fixture.id,
      event_id: data.event_id,
      event: 'webhook.test',
      status: 'delivered',
      attempt: 1,
      trigger: 'test',
      status_code: 200,
      duration_ms: 84,
      error: null,
      error_code: null,
      next_attempt_at: null,
      created_at: '2026-06-01T12:00:00.000Z',
      expires_at: '2026-06-08T12:00:00.000Z',
    })
  })

  test('is sent to a disabled endpoint, which stays disabled', async () => {
    const { json, path, post } = await endpoint({ active: false })
    expect((await json(`${path}/test`, POST)).data).toMatchObject({ status: 'delivered' })
    expect(post.sent).toHaveLength(1)
    expect((await json(path)).data).toMatchObject({ active: false })
  })

  test('fails with secret_unreadable if its secret cannot be decrypted', async () => {
    const secretBox = createSecretBox('another secret', countedRandom())
    const fixture = await endpoint()
    const row = { secret: secretBox.encrypt('whsec_AAAA') }
    await fixture.database.db.updateTable('webhook').set(row).execute()
    const { data } = await fixture.json(`${fixture.path}/test`, POST)
    expect(data).toMatchObject({ status: 'failed', error: expect.stringMatching(/secret/) })
    expect(fixture.post.sent).toEqual([])
  })
})

describe('sending a test event', () => {
  test('twice under one Idempotency-Key sends one event, and repeats the response', async () => {
    const { request, path, post } = await endpoint()
    const ask = () => request(`${path}/test`, { ...POST, headers: { 'Idempotency-Key': 'one' } })
    const [first, again] = [await ask(), await ask()]
    expect(again.headers.get('Idempotency-Replayed')).toBe('true')
    expect(await again.json()).toEqual(await first.json())
    expect(post.sent).toHaveLength(1)
    await request(`${path}/test`, { ...POST, headers: { 'Idempotency-Key': 'two' } })
    expect(post.sent).toHaveLength(2)
  })

  test('under a key in progress is refused, and sends nothing', async () => {
    const { request, path, post } = await endpoint()
    const { promise, resolve } = Promise.withResolvers<number>()
    post.answer(() => promise)
    const ask = () => request(`${path}/test`, { ...POST, headers: { 'Idempotency-Key': 'one' } })
    const first = ask()
    await waitUntil(() => post.sent.length === 1)
    expect(await codeOf(await ask())).toBe('idempotency_in_progress')
    resolve(200)
    expect((await first).status).toBe(200)
    expect(post.sent).toHaveLength(1)
  })

  test('is refused while four are in flight, until one is answered', async () => {
    const { request, path, post, addAccount, addKey } = await endpoint()
    const ends: ((status: number) => void)[] = []
    post.answer(() => new Promise<number>(resolve => ends.push(resolve)))
    const ask = () => request(`${path}/test`, POST)
    const running = [ask(), ask(), ask(), ask()]
    await waitUntil(() => ends.length === 4)
    const refused = await ask()
    expect([refused.status, await codeOf(refused)]).toEqual([429, 'rate_limit'])
    expect(refused.headers.get('Retry-After')).toBe('5')
    // Another account has its own limit.
    await addAccount('acc_2')
    const key = await addKey({ accountId: 'acc_2', id: 'key_2' })
    const url = 'https://app.test/'
    const body = { url, events: ['batch.completed'] }
    const made = (await (await request('/v1/webhooks', { key, body })).json()) as {
      data: { id: string }
    }
    const other = request(`/v1/webhooks/${made.data.id}/test`, { ...POST, key })
    await waitUntil(() => ends.length === 5)
    ends[0]?.(500)
    await running[0]
    const next = ask()
    await waitUntil(() => ends.length === 6)
    for (const end of ends) end(200)
    const all = await Promise.all([...running, other, next])
    expect(all.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200])
  })

  test('needs the scope for writing', async () => {
    const { request, path, addKey, post } = await endpoint()
    const reader = await addKey({ scopes: ['webhooks:read'] })
    const refused = await request(`${path}/test`, { ...POST, key: reader })
    expect([refused.status, await codeOf(refused)]).toEqual([403, 'insufficient_scope'])
    const writer = await addKey({ scopes: ['webhooks:write'] })
    expect((await request(`${path}/test`, { ...POST, key: writer })).status).toBe(200)
    expect(post.sent).toHaveLength(1)
  })

  test('to an unknown or deleted endpoint is refused', async () => {
    const { request, path, post } = await endpoint()
    expect((await request('/v1/webhooks/wh_none/test', POST)).status).toBe(404)
    await request(path, { method: 'DELETE' })
    expect((await request(`${path}/test`, POST)).status).toBe(404)
    expect(post.sent).toEqual([])
  })
})
