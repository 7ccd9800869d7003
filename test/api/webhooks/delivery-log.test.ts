import { describe, expect, test } from 'vitest'
import type { Scope } from '../../../src/accounts/key-rights.ts'
import { codeOf } from '../../support/guarded-route.ts'
import { type Created, endpoint, onlyDelivery } from '../../support/webhook-endpoint.ts'
import { answered } from '../../support/webhook-transport.ts'

type Page = { items: Created[]; next_cursor: string | null; has_more: boolean }

describe('the log of an endpoint', () => {
  test('shows a delivery before it is sent', async () => {
    const fixture = await endpoint()
    const event_id = await fixture.happen()
    expect(await onlyDelivery(fixture)).toEqual({
      id: expect.stringMatching(/^dlv_/),
      webhook_id: fixture.id,
      event_id,
      event: 'batch.completed',
      status: 'pending',
      attempt: 0,
      trigger: 'scheduled',
      status_code: null,
      duration_ms: null,
      error: null,
      error_code: null,
      next_attempt_at: '2026-06-01T12:00:00.000Z',
      created_at: '2026-06-01T12:00:00.000Z',
      expires_at: null,
    })
  })

  test('shows a failed delivery and its next attempt', async () => {
    const fixture = await endpoint()
    fixture.post.answer(500)
    await fixture.happen()
    await fixture.attempt()
    expect(await onlyDelivery(fixture)).toMatchObject({
      status: 'retry_scheduled',
      attempt: 1,
      status_code: 500,
      duration_ms: 84,
      error: expect.stringMatching(/500/),
      next_attempt_at: '2026-06-01T12:01:00.000Z',
      expires_at: null,
    })
  })

  test('shows a failed delivery and until when it is kept', async () => {
    const fixture = await endpoint()
    fixture.post.answer({ fault: 'Nobody answered.', faultCode: 'timeout' })
    await fixture.happen()
    await fixture.attempt({ last: true })
    expect(await onlyDelivery(fixture)).toMatchObject({
      status: 'failed',
      status_code: null,
      error: 'Nobody answered.',
      error_code: 'timeout',
      next_attempt_at: null,
      expires_at: '2026-06-08T12:00:00.000Z',
    })
  })

  test('shows a successful delivery', async () => {
    const fixture = await endpoint()
    await fixture.happen()
    await fixture.attempt()
    expect(await onlyDelivery(fixture)).toMatchObject({
      status: 'delivered',
      attempt: 1,
      status_code: 200,
      error: null,
      error_code: null,
      next_attempt_at: null,
      expires_at: '2026-06-08T12:00:00.000Z',
    })
  })

  test('has no next attempt while the endpoint is disabled', async () => {
    const fixture = await endpoint()
    await fixture.happen()
    const set = (active: boolean) =>
      fixture.request(fixture.path, { method: 'PATCH', body: { active } })
    await set(false)
    expect(await onlyDelivery(fixture)).toMatchObject({ status: 'pending', next_attempt_at: null })
    await set(true)
    expect(await onlyDelivery(fixture)).toMatchObject({
      next_attempt_at: '2026-06-01T12:00:00.000Z',
    })
  })

  test('is returned in pages, newest first', async () => {
    const { json, path, happen, clock } = await endpoint()
    const happened: string[] = []
    for (let n = 0; n < 5; n++) {
      happened.unshift(await happen())
      // Two of them share a millisecond.
      if (n !== 2) await clock.advance(1)
    }
    const pages: string[][] = []
    let cursor = ''
    for (let more = true; more; ) {
      const { data } = (await json(`${path}/deliveries?limit=2${cursor}`)) as { data: Page }
      pages.push(data.items.map(item => String(item.event_id)))
      expect(data.has_more).toBe(data.next_cursor !== null)
      cursor = `&cursor=${data.next_cursor}`
      more = data.has_more
    }
    expect(pages.map(page => page.length)).toEqual([2, 2, 1])
    expect(pages.flat()).toEqual(happened)
  })

  test('is filtered by status and by event', async () => {
    const { json, path, happen, attempt } = await endpoint({
      events: ['batch.completed', 'batch.failed'],
    })
    await happen('batch.completed')
    await attempt()
    await happen('batch.failed')
    await json(`${path}/test`, { method: 'POST' })
    const kinds = async (query: string) => {
      const { data } = (await json(`${path}/deliveries?${query}`)) as { data: Page }
      return data.items.map(({ event, status }) => `${event} ${status}`).toSorted()
    }
    expect(await kinds('status=delivered')).toEqual([
      ...['batch.completed delivered', 'webhook.test delivered'],
    ])
    expect(await kinds('status=pending')).toEqual(['batch.failed pending'])
    expect(await kinds('status=failed')).toEqual([])
    expect(await kinds('event=webhook.test')).toEqual(['webhook.test delivered'])
    expect(await kinds('event=batch.completed&status=pending')).toEqual([])
  })

  test('is searched, also with a filter', async () => {
    const { json, path, happen, attempt } = await endpoint({
      events: ['batch.completed', 'batch.failed'],
    })
    const event_id = await happen('batch.completed')
    await attempt()
    await happen('batch.failed')
    const search = async (query: string) => {
      const { data } = (await json(`${path}/deliveries?${query}`)) as { data: Page }
      return [data.items.map(({ event }) => event), data.has_more]
    }
    expect(await search(`search=${event_id}`)).toEqual([['batch.completed'], false])
    expect(await search('search=BATCH')).toEqual([['batch.failed', 'batch.completed'], false])
    expect(await search('search=batch&limit=1')).toEqual([['batch.failed'], true])
    expect(await search('search=batch&status=delivered')).toEqual([['batch.completed'], false])
    expect(await search('search=absent')).toEqual([[], false])
  })

  test('has deliveries of one endpoint only', async () => {
    const { json, happen, another } = await endpoint({ events: ['batch.failed'] })
    const other = await another({ events: ['batch.completed'] })
    await happen('batch.failed')
    expect((await json(`/v1/webhooks/${other.id}/deliveries`)).data).toEqual({
      items: [],
      next_cursor: null,
      has_more: false,
    })
  })

  test.each([
    ['status=done', /"status" in the query/],
    ['event=batch.done', /"event" in the query/],
    ['search=', /"search" in the query/],
    ['limit=201', /at most 200/],
    ['limit=0', /at least 1/],
    ['cursor=x', /"cursor" must be/],
  ])('rejects %s', async (query, sentence) => {
    const { request, path } = await endpoint()
    const response = await request(`${path}/deliveries?${query}`)
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({
      code: 'invalid_request',
      error: expect.stringMatching(sentence),
    })
  })

  test('needs the scope for reading, and an existing endpoint', async () => {
    const fixture = await endpoint()
    await fixture.happen()
    const { id } = await onlyDelivery(fixture)
    const writer = await fixture.addKey({ scopes: ['webhooks:write'] })
    const reader = await fixture.addKey({ scopes: ['webhooks:read'] })
    for (const path of [`${fixture.path}/deliveries`, `${fixture.path}/deliveries/${id}`]) {
      const refused = await fixture.request(path, { key: writer })
      expect([refused.status, await codeOf(refused)]).toEqual([403, 'insufficient_scope'])
      expect((await fixture.request(path, { key: reader })).status).toBe(200)
    }
    await fixture.request(fixture.path, { method: 'DELETE' })
    for (const path of [`${fixture.path}/deliveries`, `${fixture.path}/deliveries/${id}`]) {
      expect((await fixture.request(path)).status).toBe(404)
    }
  })
})

describe('one delivery', () => {
  test('shows the request and the response', async () => {
    const fixture = await endpoint()
    fixture.post.answer(
      answered(503, { 'content-type': 'text/plain', 'retry-after': '7' }, 'later'),
    )
    await fixture.happen()
    await fixture.clock.advance(30_000)
    const deliveryId = await fixture.attempt()
    const { data } = (await fixture.json(`${fixture.path}/deliveries/${deliveryId}`)) as {
      data: Created
    }
    const { request, response, attempts, ...row } = data
    expect(row).toEqual(await onlyDelivery(fixture))
    const [sent] = fixture.post.sent
    expect(request).toEqual({ url: sent?.url, body: sent?.body, headers: sent?.headers })
    expect(response).toEqual({
      status_code: 503,
      headers: { 'content-type': 'text/plain', 'retry-after': '7' },
      body: 'later',
    })
    expect(attempts).toEqual([
      {
        number: 1,
        trigger: 'scheduled',
        started_at: '2026-06-01T12:00:30.000Z',
        url: 'https://app.test/hook',
        status_code: 503,
        duration_ms: 84,
        error: row.error,
        error_code: 'http_status',
        response_excerpt: 'later',
        response_headers: { 'content-type': 'text/plain', 'retry-after': '7' },
      },
    ])
  })

  test('shows signatures only to keys that may send tests', async () => {
    const fixture = await endpoint()
    await fixture.happen()
    const deliveryId = await fixture.attempt()
    const headerNames = async (scopes: Scope[]) => {
      const key = await fixture.addKey({ scopes })
      const response = await fixture.request(`${fixture.path}/deliveries/${deliveryId}`, { key })
      const { data } = (await response.json()) as { data: { request: { headers: object } } }
      return Object.keys(data.request.headers)
    }
    const others = ['Content-Type', 'User-Agent', 'webhook-id', 'webhook-timestamp']
    expect((await headerNames(['webhooks:read'])).toSorted()).toEqual(others)
    expect((await headerNames(['webhooks:read', 'webhooks:write'])).toSorted()).toEqual(
      [...others, 'X-EV-Signature', 'webhook-signature'].toSorted(),
    )
  })

  test('shows all attempts in their order, each with its URL', async () => {
    const fixture = await endpoint()
    await fixture.happen()
    fixture.post.answer(500)
    await fixture.attempt()
    const body = { url: 'https://app.test/new' }
    await fixture.request(fixture.path, { method: 'PATCH', body })
    await fixture.clock.advance(60_000)
    fixture.post.answer({ fault: 'Nobody answered.' })
    const id = await fixture.attempt()
    const { data } = (await fixture.json(`${fixture.path}/deliveries/${id}`)) as { data: Created }
    expect(data).toMatchObject({
      request: { url: 'https://app.test/new' },
      response: null,
      attempts: [
        { number: 1, url: 'https://app.test/hook', status_code: 500, response_excerpt: 'ok' },
        {
          number: 2,
          url: 'https://app.test/new',
          status_code: null,
          response_excerpt: null,
          response_headers: null,
        },
      ],
    })
  })

  test('without an attempt shows what will be sent', async () => {
    const fixture = await endpoint()
    const event_id = await fixture.happen('batch.completed', { job_id: 'job_a' })
    const { id } = await onlyDelivery(fixture)
    const { data } = await fixture.json(`${fixture.path}/deliveries/${id}`)
    const { request } = data as { request: { body: string } }
    expect(data).toMatchObject({
      request: {
        url: 'https://app.test/hook',
        headers: { 'Content-Type': 'application/json', 'webhook-id': event_id },
      },
      response: null,
      attempts: [],
    })
    expect(JSON.parse(request.body)).toMatchObject({ event_id, data: { job_id: 'job_a' } })
  })

  test('of another endpoint returns 404', async () => {
    const fixture = await endpoint()
    const other = await fixture.another({ events: ['quota.warning'] })
    await fixture.happen()
    const { id } = await onlyDelivery(fixture)
    for (const path of [
      `/v1/webhooks/${other.id}/deliveries/${id}`,
      `${fixture.path}/deliveries/x`,
    ]) {
      const response = await fixture.request(path)
      expect([response.status, await response.json()]).toEqual([
        404,
        expect.objectContaining({
          code: 'not_found',
          error: expect.stringMatching(/^Delivery .* does not exist\./),
        }),
      ])
    }
  })
})
