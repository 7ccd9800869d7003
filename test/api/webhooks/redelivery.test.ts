import { describe, expect, test } from 'vitest'
import { codeOf } from '../../support/guarded-route.ts'
import { endpoint, onlyDelivery } from '../../support/webhook-endpoint.ts'

const POST = { method: 'POST' }
const LONG_AGO = { since: '2026-05-01T00:00:00Z' }

describe('a retried delivery', () => {
  test('is due at once, restarts at its first attempt, and wakes the sender', async () => {
    const { fixture, one } = await withFailed()
    await fixture.clock.advance(1_000)
    const response = await fixture.request(`${one}/retry`, POST)
    expect(response.status).toBe(200)
    const { data } = (await response.json()) as { data: object }
    expect(data).toMatchObject({
      status: 'pending',
      attempt: 0,
      trigger: 'manual',
      expires_at: null,
      next_attempt_at: '2026-06-01T12:00:01.000Z',
    })
    expect(data).toEqual(await onlyDelivery(fixture))
    expect(fixture.wakes).toEqual([fixture.clock.now()])
  })

  test('is the same event in the same bytes, and its attempts are counted on', async () => {
    const { fixture, one } = await withFailed()
    await fixture.request(`${one}/retry`, POST)
    fixture.post.answer(200)
    await fixture.attempt()
    const [first, again] = fixture.post.sent
    expect(again?.body).toBe(first?.body)
    expect(again?.headers['webhook-id']).toBe(first?.headers['webhook-id'])
    expect((await fixture.json(one)).data).toMatchObject({
      status: 'delivered',
      attempt: 1,
      trigger: 'manual',
      attempts: [
        { number: 1, trigger: 'scheduled', status_code: 500 },
        { number: 2, trigger: 'manual', status_code: 200 },
      ],
    })
  })

  test('may have been delivered, or wait for its next attempt', async () => {
    const fixture = await endpoint()
    await fixture.happen()
    fixture.post.answer(500)
    const path = `${fixture.path}/deliveries/${await fixture.attempt()}/retry`
    expect(await onlyDelivery(fixture)).toMatchObject({ status: 'retry_scheduled' })
    expect((await fixture.json(path, POST)).data).toMatchObject({ status: 'pending', attempt: 0 })
    fixture.post.answer(200)
    await fixture.attempt()
    expect(await onlyDelivery(fixture)).toMatchObject({ status: 'delivered' })
    expect((await fixture.json(path, POST)).data).toMatchObject({ status: 'pending', attempt: 0 })
  })

  test('is unchanged if it is already due', async () => {
    const fixture = await endpoint()
    await fixture.happen()
    const before = await onlyDelivery(fixture)
    await fixture.clock.advance(1_000)
    const { data } = await fixture.json(`${fixture.path}/deliveries/${before.id}/retry`, POST)
    expect(data).toEqual(before)
  })

  test('twice under one Idempotency-Key is resent once, even if it was delivered meanwhile', async () => {
    const { fixture, one } = await withFailed()
    const ask = () =>
      fixture.request(`${one}/retry`, { ...POST, headers: { 'Idempotency-Key': 'a' } })
    const first = await ask()
    fixture.post.answer(200)
    await fixture.attempt()
    const again = await ask()
    expect(await again.json()).toEqual(await first.json())
    expect(await onlyDelivery(fixture)).toMatchObject({ status: 'delivered' })
  })

  test('is refused for a disabled endpoint', async () => {
    const { fixture, one } = await withFailed()
    await fixture.request(fixture.path, { method: 'PATCH', body: { active: false } })
    const before = await onlyDelivery(fixture)
    const response = await fixture.request(`${one}/retry`, POST)
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({
      code: 'invalid_request',
      error: expect.stringMatching(/disabled.*active/),
    })
    expect(await onlyDelivery(fixture)).toEqual(before)
    expect(fixture.wakes).toEqual([])
  })

  test('belongs to the endpoint, and needs the scope for writing', async () => {
    const { fixture, one } = await withFailed()
    const other = await fixture.another({ events: ['quota.warning'] })
    const { id } = await onlyDelivery(fixture)
    for (const path of [
      `/v1/webhooks/${other.id}/deliveries/${id}/retry`,
      `${fixture.path}/deliveries/dlv_none/retry`,
      `/v1/webhooks/wh_none/deliveries/${id}/retry`,
    ]) {
      const response = await fixture.request(path, POST)
      expect([response.status, await codeOf(response)]).toEqual([404, 'not_found'])
    }
    const reader = await fixture.addKey({ scopes: ['webhooks:read'] })
    const refused = await fixture.request(`${one}/retry`, { ...POST, key: reader })
    expect([refused.status, await codeOf(refused)]).toEqual([403, 'insufficient_scope'])
    expect(await onlyDelivery(fixture)).toMatchObject({ status: 'failed' })
  })
})

describe('resending failed deliveries', () => {
  test('resends all that failed since a time, and nothing else', async () => {
    const fixture = await endpoint()
    fixture.post.answer(500)
    for (let n = 0; n < 3; n++) {
      await fixture.happen()
      await fixture.attempt({ last: true })
      await fixture.clock.advance(1_000)
    }
    fixture.post.answer(200)
    await fixture.happen()
    await fixture.attempt()
    await fixture.json(`${fixture.path}/test`, POST)
    // The same time with another UTC offset.
    const body = { since: '2026-06-01T14:00:01+02:00' }
    const response = await fixture.request(`${fixture.path}/recover`, { body })
    expect(response.status).toBe(200)
    expect(await response.json()).toEqual({ success: true, data: { recovered: 2 } })
    expect(fixture.wakes).toEqual([fixture.clock.now()])
    const { data } = (await fixture.json(`${fixture.path}/deliveries?event=batch.completed`)) as {
      data: { items: object[] }
    }
    expect(data.items).toMatchObject([
      { status: 'delivered' },
      { status: 'pending', trigger: 'manual', attempt: 0 },
      { status: 'pending', trigger: 'manual', attempt: 0 },
      { status: 'failed' },
    ])
  })

  test('is limited to one endpoint', async () => {
    const { fixture } = await withFailed()
    const other = await fixture.another()
    const { data } = await fixture.json(`/v1/webhooks/${other.id}/recover`, { body: LONG_AGO })
    expect(data).toEqual({ recovered: 0 })
    expect(await onlyDelivery(fixture)).toMatchObject({ status: 'failed' })
  })

  test('twice under one Idempotency-Key happens once', async () => {
    const { fixture } = await withFailed()
    const headers = { 'Idempotency-Key': 'one' }
    const ask = () => fixture.json(`${fixture.path}/recover`, { body: LONG_AGO, headers })
    expect((await ask()).data).toEqual({ recovered: 1 })
    await fixture.attempt({ last: true })
    expect((await ask()).data).toEqual({ recovered: 1 })
    expect(await onlyDelivery(fixture)).toMatchObject({ status: 'failed' })
  })

  test('is refused for a disabled endpoint', async () => {
    const { fixture } = await withFailed()
    await fixture.request(fixture.path, { method: 'PATCH', body: { active: false } })
    const response = await fixture.request(`${fixture.path}/recover`, { body: LONG_AGO })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({
      code: 'invalid_request',
      error: expect.stringMatching(/disabled.*active/),
    })
    expect(await onlyDelivery(fixture)).toMatchObject({ status: 'failed' })
    expect(fixture.wakes).toEqual([])
  })

  test.each<[object, RegExp]>([
    [{}, /"since" is missing/],
    [{ since: 'yesterday' }, /be a time such as/],
    [{ since: '2026-05-01' }, /be a time such as/],
    [{ since: 1_780_315_200 }, /be a string/],
    [{ ...LONG_AGO, until: 'x' }, /"until" is not a known field\. The body takes since\./],
  ])('rejects %j', async (body, sentence) => {
    const { fixture } = await withFailed()
    const response = await fixture.request(`${fixture.path}/recover`, { body })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({
      code: 'invalid_request',
      error: expect.stringMatching(sentence),
    })
    expect(await onlyDelivery(fixture)).toMatchObject({ status: 'failed' })
  })

  test('needs the scope for writing, and an existing endpoint', async () => {
    const { fixture } = await withFailed()
    const reader = await fixture.addKey({ scopes: ['webhooks:read'] })
    const refused = await fixture.request(`${fixture.path}/recover`, {
      body: LONG_AGO,
      key: reader,
    })
    expect([refused.status, await codeOf(refused)]).toEqual([403, 'insufficient_scope'])
    const missing = await fixture.request('/v1/webhooks/wh_none/recover', { body: LONG_AGO })
    expect([missing.status, await codeOf(missing)]).toEqual([404, 'not_found'])
  })
})

/** An endpoint with a failed delivery, and its path. */
async function withFailed() {
  const fixture = await endpoint()
  fixture.post.answer(500)
  await fixture.happen()
  const id = await fixture.attempt({ last: true })
  return { fixture, one: `${fixture.path}/deliveries/${id}` }
}
