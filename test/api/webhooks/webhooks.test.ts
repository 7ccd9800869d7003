import { describe, expect, test } from 'vitest'
import { batchCompleted, batchFailed, quotaData } from '../../../src/webhooks/event.ts'
import { EVENT_KINDS } from '../../../src/webhooks/event-types.ts'
import { createTestService } from '../../support/service.ts'
import { endpoint } from '../../support/webhook-endpoint.ts'

const PUBLIC = { 'app.test': { A: ['8.8.8.8'] }, 'inside.test': { A: ['10.0.0.7'] } }
const NEW = { url: 'https://app.test/hook', events: ['batch.completed'], active: true }

const withNames = (settings = {}) => createTestService({ engine: { zone: PUBLIC }, settings })

describe('creating a webhook endpoint', () => {
  test('shows its secret once, and the stored endpoint', async () => {
    const { request, json, service, database } = await withNames()
    const response = await request('/v1/webhooks', { body: NEW })
    expect(response.status).toBe(201)
    const { data } = (await response.json()) as { data: { id: string; secret: string } }
    expect(data).toEqual({
      id: expect.stringMatching(/^wh_[a-z0-9]{16}$/),
      url: 'https://app.test/hook',
      events: ['batch.completed'],
      active: true,
      description: null,
      secret: expect.stringMatching(/^whsec_[A-Za-z0-9+/]{32}$/),
      created_at: '2026-06-01T12:00:00.000Z',
      updated_at: '2026-06-01T12:00:00.000Z',
      disabled_reason: null,
      disabled_code: null,
      failing_since: null,
      header_names: [],
      success_rate: null,
      daily_attempts: [],
    })
    expect(response.headers.get('Location')).toBe(`/v1/webhooks/${data.id}`)
    const { secret, ...kept } = data
    const shown = { ...kept, secret_hint: secret.slice(-4) }
    expect((await json('/v1/webhooks')).data).toEqual({ webhooks: [shown], total: 1 })
    expect(await json(`/v1/webhooks/${data.id}`)).toEqual({ success: true, data: shown })
    const row = await database.db.selectFrom('webhook').selectAll().executeTakeFirstOrThrow()
    expect(row.secret).not.toContain(secret)
    expect(service.secretBox.decrypt(row.secret)).toBe(secret)
  })

  test('never returns the values of custom headers', async () => {
    const { request } = await withNames()
    const headers = { Authorization: 'Bearer 4f9c21', 'X-Tenant': 'tenant 7' }
    const created = await request('/v1/webhooks', { body: { ...NEW, headers } })
    const text = await created.text()
    const { data } = JSON.parse(text) as { data: { id: string } }
    expect(data).toMatchObject({ header_names: ['Authorization', 'X-Tenant'] })
    const path = `/v1/webhooks/${data.id}`
    const change = { headers: { Authorization: null, 'X-More': 'more 8' } }
    const changed = await (await request(path, { method: 'PATCH', body: change })).text()
    expect(JSON.parse(changed)).toMatchObject({ data: { header_names: ['X-Tenant', 'X-More'] } })
    const put = await (await request(path, { method: 'PUT', body: NEW })).text()
    expect(JSON.parse(put)).toMatchObject({ data: { header_names: [] } })
    const shown = [text, changed, put, await (await request(path)).text()].join()
    expect(shown).not.toMatch(/4f9c21|tenant 7|more 8/)
  })

  test('refuses a custom header that the service sets, and names it', async () => {
    const { request } = await withNames()
    const body = { ...NEW, headers: { 'webhook-signature': 'v1,x' } }
    const response = await request('/v1/webhooks', { body })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({
      code: 'invalid_request',
      error:
        '"headers" has "webhook-signature", which is not allowed. ev or HTTP sets this header itself.',
    })
  })

  test('twice under one Idempotency-Key creates one, and shows the same secret', async () => {
    const { request, json } = await withNames()
    const ask = () => request('/v1/webhooks', { body: NEW, headers: { 'Idempotency-Key': 'one' } })
    const [first, again] = [await ask(), await ask()]
    expect(await again.json()).toEqual(await first.json())
    expect((await json('/v1/webhooks')).data).toMatchObject({ total: 1 })
  })

  test('has defaults for active and description; each event is stored once', async () => {
    const { json } = await withNames()
    const events = ['quota.warning', 'batch.failed', 'quota.warning']
    const body = { url: NEW.url, events, description: ' ours ' }
    expect((await json('/v1/webhooks', { body })).data).toMatchObject({
      active: true,
      events: ['quota.warning', 'batch.failed'],
      description: 'ours',
    })
  })

  test.each<[string, object, string, RegExp]>([
    ['plain http', { url: 'http://app.test/' }, 'invalid_webhook_url', /https/],
    [
      'an address on a private network',
      { url: 'https://10.1/' },
      'invalid_webhook_url',
      /10\.0.*allow others with --webhook-allow-ranges/,
    ],
    [
      'a name with such an address',
      { url: 'https://inside.test/' },
      'invalid_webhook_url',
      /an address that is not public/,
    ],
    [
      'an unknown name',
      { url: 'https://none.test/' },
      'invalid_webhook_url',
      /no address in the DNS\.$/,
    ],
    ['a text that is not a URL', { url: 'hook' }, 'invalid_webhook_url', /not a URL/],
    ['a URL that is not a text', { url: 7 }, 'invalid_request', /"url"/],
    ['no URL', { url: undefined }, 'invalid_request', /"url"/],
    ['an unknown event', { events: ['batch.done'] }, 'invalid_event', /batch\.completed/],
    ['no events', { events: [] }, 'invalid_event', /verification\.completed/],
    ['events that are not a list', { events: 'batch.completed' }, 'invalid_request', /"events"/],
    ['a switch that is not a boolean', { active: 'yes' }, 'invalid_request', /"active"/],
    ['a long description', { description: 'x'.repeat(501) }, 'invalid_request', /"description"/],
  ])('rejects %s', async (_, change, code, reason) => {
    const { request, json } = await withNames()
    const response = await request('/v1/webhooks', { body: { ...NEW, ...change } })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ code, error: expect.stringMatching(reason) })
    expect((await json('/v1/webhooks')).data).toMatchObject({ total: 0 })
  })

  test('within the allowed ranges is accepted', async () => {
    const { request } = await withNames({ webhookAllowRanges: ['10.0.0.0/8'] })
    const body = { ...NEW, url: 'https://inside.test:8443/' }
    expect((await request('/v1/webhooks', { body })).status).toBe(201)
  })

  test('is limited to fifty', async () => {
    const { request } = await withNames()
    for (let n = 0; n < 50; n++) {
      expect((await request('/v1/webhooks', { body: NEW })).status).toBe(201)
    }
    const response = await request('/v1/webhooks', { body: NEW })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: expect.stringMatching(/50 webhook/) })
  })
})

describe('a webhook endpoint', () => {
  test('changes in the named fields only', async () => {
    const { json, clock, created } = await withOne()
    await clock.advance(1_000)
    const patched = await json(`/v1/webhooks/${created.id}`, {
      method: 'PATCH',
      body: { active: false },
    })
    expect(patched.data).toEqual({
      ...created,
      active: false,
      updated_at: '2026-06-01T12:00:01.000Z',
    })
  })

  test('that is replaced has defaults for omitted fields, and keeps its secret', async () => {
    const { json, database, created } = await withOne({ active: false, description: 'ours' })
    const before = await database.db.selectFrom('webhook').select('secret').execute()
    const body = { url: NEW.url, events: ['quota.exceeded'] }
    const put = await json(`/v1/webhooks/${created.id}`, { method: 'PUT', body })
    expect(put.data).toEqual({
      ...created,
      events: ['quota.exceeded'],
      active: true,
      description: null,
    })
    expect(await database.db.selectFrom('webhook').select('secret').execute()).toEqual(before)
  })

  test('is validated again when its URL changes, and not otherwise', async () => {
    const { request, zone, created } = await withOne()
    const patch = (body: object) => request(`/v1/webhooks/${created.id}`, { method: 'PATCH', body })
    const refused = await patch({ url: 'https://inside.test/' })
    expect(refused.status).toBe(400)
    expect(await refused.json()).toMatchObject({ code: 'invalid_webhook_url' })
    zone.set('app.test', null)
    expect((await patch({ url: NEW.url, active: true })).status).toBe(200)
    expect((await patch({ events: ['nothing'] })).status).toBe(400)
  })

  test('returns 404 when it is deleted', async () => {
    const { request, json, created } = await withOne()
    const remove = () => request(`/v1/webhooks/${created.id}`, { method: 'DELETE' })
    expect((await remove()).status).toBe(204)
    expect((await remove()).status).toBe(404)
    expect((await request(`/v1/webhooks/${created.id}`)).status).toBe(404)
    expect((await json('/v1/webhooks')).data).toEqual({ webhooks: [], total: 0 })
  })

  test('needs the scope for reading to be shown, and that for writing to be changed', async () => {
    const { request, addKey, created } = await withOne()
    const reader = await addKey({ scopes: ['webhooks:read'] })
    const writer = await addKey({ scopes: ['webhooks:write'] })
    const status = async (method: string, path: string, key: string) =>
      (await request(path, { method, key, ...(method === 'PATCH' ? { body: {} } : {}) })).status
    const one = `/v1/webhooks/${created.id}`
    for (const path of ['/v1/webhooks', one, '/v1/webhooks/events']) {
      expect([await status('GET', path, reader), await status('GET', path, writer)]).toEqual([
        ...[200, 403],
      ])
    }
    expect([await status('PATCH', one, reader), await status('PATCH', one, writer)]).toEqual([
      ...[403, 200],
    ])
    expect([await status('DELETE', one, reader), await status('DELETE', one, writer)]).toEqual([
      ...[403, 204],
    ])
  })

  test('shows since when it fails and why it was disabled, until it is enabled again', async () => {
    const { json, database, clock, created } = await withOne()
    const disabled = { active: 0, disabled_reason: 'It failed.', disabled_code: 'failing' } as const
    const since = { failing_since: clock.now() }
    await database.db
      .updateTable('webhook')
      .set({ ...disabled, ...since })
      .execute()
    expect((await json(`/v1/webhooks/${created.id}`)).data).toMatchObject({
      active: false,
      disabled_reason: 'It failed.',
      disabled_code: 'failing',
      failing_since: '2026-06-01T12:00:00.000Z',
    })
    const on = { method: 'PATCH', body: { active: true } }
    expect((await json(`/v1/webhooks/${created.id}`, on)).data).toMatchObject({
      active: true,
      disabled_reason: null,
      disabled_code: null,
      failing_since: null,
    })
  })

  test('that is enabled has its waiting deliveries sent at once', async () => {
    const { request, path, wakes } = await endpoint({ active: false })
    const ask = (method: string, body: object) => request(path, { method, body })
    await ask('PATCH', { active: true })
    expect(wakes).toHaveLength(1)
    await ask('PUT', NEW)
    expect(wakes).toHaveLength(2)
    await ask('PATCH', { active: false })
    await ask('PATCH', { description: 'ours' })
    await ask('PATCH', { active: 'no' })
    expect(wakes).toHaveLength(2)
  })
})

describe('the list of event types', () => {
  test('has the schema of their data and an example', async () => {
    const { json } = await createTestService()
    const { data } = (await json('/v1/webhooks/events')) as unknown as { data: Catalogue }
    expect(data.events.map(({ event }) => event)).toEqual(EVENT_KINDS)
    for (const { event, schema, example } of data.events) {
      expect(schema).toMatchObject({ type: 'object' })
      expect(example).toMatchObject({ event, event_id: 'evt_abc123' })
      expect(Object.keys(example.data).toSorted()).toEqual([...schema.required].toSorted())
    }
  })

  test('matches the events that are emitted', async () => {
    const { json } = await createTestService()
    const { data } = (await json('/v1/webhooks/events')) as unknown as { data: Catalogue }
    const keysOf = (kind: string) =>
      Object.keys(data.events.find(({ event }) => event === kind)?.schema.properties ?? {})
    const counts = {
      jobId: 'job_a',
      total: 0,
      done: 0,
      deliverable: 0,
      risky: 0,
      undeliverable: 0,
      unknown: 0,
      failed: 0,
      error: null,
      metadata: {},
      previousJobId: 'job_b',
      scheduleId: 'sch_a',
    }
    expect(keysOf('batch.completed')).toEqual(Object.keys(batchCompleted(counts, '')))
    expect(keysOf('batch.failed')).toEqual(Object.keys(batchFailed(counts)))
    const quota = { plan: 'free', limit: 1, used: 1, thresholdPercent: 80, resetsAt: 0 }
    expect(keysOf('quota.warning')).toEqual(Object.keys(quotaData(quota)))
    expect(keysOf('quota.exceeded')).toEqual(Object.keys(quotaData(quota)))
  })
})

type Catalogue = {
  events: {
    event: string
    schema: { required: string[]; properties: object }
    example: { data: object }
  }[]
}

async function withOne(change: object = {}) {
  const given = await withNames()
  await given.json('/v1/webhooks', { body: { ...NEW, ...change } })
  const { data } = (await given.json('/v1/webhooks')) as {
    data: { webhooks: { id: string; [field: string]: unknown }[] }
  }
  const created = data.webhooks[0]
  if (created === undefined) throw new Error('nothing was registered')
  return { ...given, created }
}
