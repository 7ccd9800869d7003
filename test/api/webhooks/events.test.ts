import { describe, expect, test } from 'vitest'
import { codeOf } from '../../support/guarded-route.ts'
import { type Created, endpoint, onlyDelivery } from '../../support/webhook-endpoint.ts'

type Page = { items: Created[]; next_cursor: string | null; has_more: boolean }

describe('events', () => {
  test('are listed as they are sent', async () => {
    const { json, happen } = await endpoint()
    const event_id = await happen()
    expect((await json('/v1/events')).data).toEqual({
      items: [
        {
          event_id,
          event: 'batch.completed',
          timestamp: '2026-06-01T12:00:00.000Z',
          sandbox: false,
          data: { job_id: 'job_a' },
        },
      ],
      next_cursor: null,
      has_more: false,
    })
  })

  test('of the sandbox are marked', async () => {
    const { json, path } = await endpoint()
    await json(`${path}/test`, { body: { event: 'batch.failed' } })
    expect((await json('/v1/events')).data).toMatchObject({
      items: [{ event: 'batch.failed', sandbox: true, data: { job_id: 'job_xyz789' } }],
    })
  })

  test('are returned in pages, newest first', async () => {
    const { json, happen, clock } = await endpoint()
    const happened: string[] = []
    for (let n = 0; n < 5; n++) {
      happened.unshift(await happen())
      // Two of them share a millisecond.
      if (n !== 2) await clock.advance(1)
    }
    const pages: string[][] = []
    let cursor = ''
    for (let more = true; more; ) {
      const { data } = (await json(`/v1/events?limit=2${cursor}`)) as { data: Page }
      pages.push(data.items.map(item => String(item.event_id)))
      cursor = `&cursor=${data.next_cursor}`
      more = data.has_more
    }
    expect(pages.map(page => page.length)).toEqual([2, 2, 1])
    expect(pages.flat()).toEqual(happened)
  })

  test('are filtered by type and time', async () => {
    const { json, happen, clock } = await endpoint({ events: ['batch.completed', 'batch.failed'] })
    await happen('batch.completed')
    await clock.advance(60_000)
    await happen('batch.failed')
    const kinds = async (query: string) => {
      const { data } = (await json(`/v1/events?${query}`)) as { data: Page }
      return data.items.map(({ event }) => event)
    }
    expect(await kinds('event=batch.failed')).toEqual(['batch.failed'])
    expect(await kinds('event=quota.warning')).toEqual([])
    expect(await kinds('since=2026-06-01T12:01:00Z')).toEqual(['batch.failed'])
    expect(await kinds('until=2026-06-01T12:01:00Z')).toEqual(['batch.completed'])
    expect(await kinds('since=2026-06-01&until=2026-06-02')).toEqual([
      ...['batch.failed', 'batch.completed'],
    ])
  })

  test.each([
    ['event=batch.done', /"event" in the query/],
    ['since=yesterday', /"since" in the query/],
    ['cursor=x', /"cursor" must be/],
  ])('are not listed for %s', async (query, sentence) => {
    const { request } = await endpoint()
    const response = await request(`/v1/events?${query}`)
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: expect.stringMatching(sentence) })
  })

  test('need the scope webhooks:read', async () => {
    const { request, addKey } = await endpoint()
    const key = await addKey({ scopes: ['account:read'] })
    expect(await codeOf(await request('/v1/events', { key }))).toBe('insufficient_scope')
  })
})

describe('an event', () => {
  test('has its deliveries to endpoints that still exist', async () => {
    const fixture = await endpoint()
    const { json, request, happen, another } = fixture
    const other = await another()
    const event_id = await happen()
    await request(`/v1/webhooks/${other.id}`, { method: 'DELETE' })
    expect((await json(`/v1/events/${event_id}`)).data).toEqual({
      event_id,
      event: 'batch.completed',
      timestamp: '2026-06-01T12:00:00.000Z',
      sandbox: false,
      data: { job_id: 'job_a' },
      deliveries: [await onlyDelivery(fixture)],
    })
  })

  test('that does not exist returns 404', async () => {
    const { request } = await endpoint()
    expect(await codeOf(await request('/v1/events/evt_none'))).toBe('not_found')
  })
})
