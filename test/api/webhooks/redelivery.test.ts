import { describe, expect, test } from 'vitest'
import { codeOf } from '../../support/guarded-route.ts'
import { endpoint, onlyDelivery } from '../../support/webhook-endpoint.ts'

const POST = { method: 'POST' }
const LONG_AGO = { since: '2026-05-01T00:00:00Z' }

describe('a retried delivery', () => {
  test('is due at once, restarts at its first attempt, and wakes the sender', async () => {
    const { home, one } = await withFailed()
    await home.clock.advance(1_000)
    const response = await home.request(`${one}/retry`, POST)
    expect(response.status).toBe(200)
    const { data } = (await response.json()) as { data: object }
    expect(data).toMatchObject({
      ...{ status: 'pending', attempt: 0, trigger: 'manual', expires_at: null },
      next_attempt_at: '2026-06-01T12:00:01.000Z',
    })
    expect(data).toEqual(await onlyDelivery(home))
    expect(home.wakes).toEqual([home.clock.now()])
  })

  test('is the same event in the same bytes, and its attempts are counted on', async () => {
    const { home, one } = await withFailed()
    await home.request(`${one}/retry`, POST)
    home.post.answer(200)
    await home.attempt()
    const [first, again] = home.post.sent
    expect(again?.body).toBe(first?.body)
    expect(again?.headers['webhook-id']).toBe(first?.headers['webhook-id'])
    expect((await home.json(one)).data).toMatchObject({
      ...{ status: 'delivered', attempt: 1, trigger: 'manual' },
      attempts: [
        { number: 1, trigger: 'scheduled', status_code: 500 },
        { number: 2, trigger: 'manual', status_code: 200 },
      ],
    })
  })

  test('may have been delivered, or wait for its next attempt', async () => {
    const home = await endpoint()
    await home.happen()
    home.post.answer(500)
    const path = `${home.path}/deliveries/${await home.attempt()}/retry`
    expect(await onlyDelivery(home)).toMatchObject({ status: 'retry_scheduled' })
    expect((await home.json(path, POST)).data).toMatchObject({ status: 'pending', attempt: 0 })
    home.post.answer(200)
    await home.attempt()
    expect(await onlyDelivery(home)).toMatchObject({ status: 'delivered' })
    expect((await home.json(path, POST)).data).toMatchObject({ status: 'pending', attempt: 0 })
  })

  test('is unchanged if it is already due', async () => {
    const home = await endpoint()
    await home.happen()
    const before = await onlyDelivery(home)
    await home.clock.advance(1_000)
    const { data } = await home.json(`${home.path}/deliveries/${before.id}/retry`, POST)
    expect(data).toEqual(before)
  })

  test('twice under one Idempotency-Key is resent once, even if it was delivered meanwhile', async () => {
    const { home, one } = await withFailed()
    const ask = () => home.request(`${one}/retry`, { ...POST, headers: { 'Idempotency-Key': 'a' } })
    const first = await ask()
    home.post.answer(200)
    await home.attempt()
    const again = await ask()
    expect(await again.json()).toEqual(await first.json())
    expect(await onlyDelivery(home)).toMatchObject({ status: 'delivered' })
  })

  test('is refused for a disabled endpoint', async () => {
    const { home, one } = await withFailed()
    await home.request(home.path, { method: 'PATCH', body: { active: false } })
    const before = await onlyDelivery(home)
    const response = await home.request(`${one}/retry`, POST)
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({
      ...{ code: 'invalid_request', error: expect.stringMatching(/disabled.*active/) },
    })
    expect(await onlyDelivery(home)).toEqual(before)
    expect(home.wakes).toEqual([])
  })

  test('belongs to the endpoint, and needs the scope for writing', async () => {
    const { home, one } = await withFailed()
    const other = await home.another({ events: ['quota.warning'] })
    const { id } = await onlyDelivery(home)
    for (const path of [
      `/v1/webhooks/${other.id}/deliveries/${id}/retry`,
      `${home.path}/deliveries/dlv_none/retry`,
      `/v1/webhooks/wh_none/deliveries/${id}/retry`,
    ]) {
      const response = await home.request(path, POST)
      expect([response.status, await codeOf(response)]).toEqual([404, 'not_found'])
    }
    const reader = await home.addKey({ scopes: ['webhooks:read'] })
    const refused = await home.request(`${one}/retry`, { ...POST, key: reader })
    expect([refused.status, await codeOf(refused)]).toEqual([403, 'insufficient_scope'])
    expect(await onlyDelivery(home)).toMatchObject({ status: 'failed' })
  })
})

describe('resending failed deliveries', () => {
  test('resends all that failed since a time, and nothing else', async () => {
    const home = await endpoint()
    home.post.answer(500)
    for (let n = 0; n < 3; n++) {
      await home.happen()
      await home.attempt({ last: true })
      await home.clock.advance(1_000)
    }
    home.post.answer(200)
    await home.happen()
    await home.attempt()
    await home.json(`${home.path}/test`, POST)
    // The same time with another UTC offset.
    const body = { since: '2026-06-01T14:00:01+02:00' }
    const response = await home.request(`${home.path}/recover`, { body })
    expect(response.status).toBe(200)
    expect(await response.json()).toEqual({ success: true, data: { recovered: 2 } })
    expect(home.wakes).toEqual([home.clock.now()])
    const { data } = (await home.json(`${home.path}/deliveries?event=batch.completed`)) as {
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
    const { home } = await withFailed()
    const other = await home.another()
    const { data } = await home.json(`/v1/webhooks/${other.id}/recover`, { body: LONG_AGO })
    expect(data).toEqual({ recovered: 0 })
    expect(await onlyDelivery(home)).toMatchObject({ status: 'failed' })
  })

  test('twice under one Idempotency-Key happens once', async () => {
    const { home } = await withFailed()
    const headers = { 'Idempotency-Key': 'one' }
    const ask = () => home.json(`${home.path}/recover`, { body: LONG_AGO, headers })
    expect((await ask()).data).toEqual({ recovered: 1 })
    await home.attempt({ last: true })
    expect((await ask()).data).toEqual({ recovered: 1 })
    expect(await onlyDelivery(home)).toMatchObject({ status: 'failed' })
  })

  test('is refused for a disabled endpoint', async () => {
    const { home } = await withFailed()
    await home.request(home.path, { method: 'PATCH', body: { active: false } })
    const response = await home.request(`${home.path}/recover`, { body: LONG_AGO })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({
      ...{ code: 'invalid_request', error: expect.stringMatching(/disabled.*active/) },
    })
    expect(await onlyDelivery(home)).toMatchObject({ status: 'failed' })
    expect(home.wakes).toEqual([])
  })

  test.each<[object, RegExp]>([
    [{}, /"since" is missing/],
    [{ since: 'yesterday' }, /be a time such as/],
    [{ since: '2026-05-01' }, /be a time such as/],
    [{ since: 1_780_315_200 }, /be a string/],
    [{ ...LONG_AGO, until: 'x' }, /"until" is not a known field\. The body takes since\./],
  ])('rejects %j', async (body, sentence) => {
    const { home } = await withFailed()
    const response = await home.request(`${home.path}/recover`, { body })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({
      ...{ code: 'invalid_request', error: expect.stringMatching(sentence) },
    })
    expect(await onlyDelivery(home)).toMatchObject({ status: 'failed' })
  })

  test('needs the scope for writing, and an existing endpoint', async () => {
    const { home } = await withFailed()
    const reader = await home.addKey({ scopes: ['webhooks:read'] })
    const refused = await home.request(`${home.path}/recover`, { body: LONG_AGO, key: reader })
    expect([refused.status, await codeOf(refused)]).toEqual([403, 'insufficient_scope'])
    const missing = await home.request('/v1/webhooks/wh_none/recover', { body: LONG_AGO })
    expect([missing.status, await codeOf(missing)]).toEqual([404, 'not_found'])
  })
})

/** An endpoint with a failed delivery, and its path. */
async function withFailed() {
  const home = await endpoint()
  home.post.answer(500)
  await home.happen()
  const id = await home.attempt({ last: true })
  return { home, one: `${home.path}/deliveries/${id}` }
}
