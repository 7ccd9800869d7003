import { describe, expect, test } from 'vitest'
import { codeOf } from '../support/guarded-route.ts'
import { createSimulatedList } from '../support/list-service.ts'
import { createTestService } from '../support/service.ts'

type Entry = { action: string; target_id: string; changed: string[] | null }

const createAudited = () =>
  createTestService({ engine: { zone: { 'app.test': { A: ['8.8.8.8'] } } } })

type Audited = Awaited<ReturnType<typeof createAudited>>

const entriesOf = async ({ json }: Audited, query = '') =>
  ((await json(`/v1/audit${query}`)).data as { items: Entry[] }).items

const summaryOf = async (service: Audited) =>
  (await entriesOf(service)).map(({ action, changed }) =>
    changed === null ? action : `${action} ${changed}`,
  )

describe('the audit log', () => {
  test('has the changes of keys', async () => {
    const service = await createAudited()
    const { json, request } = service
    const created = await json('/v1/keys', { body: { name: 'CI', scopes: ['jobs:read'] } })
    const { id } = created.data as { id: string }
    const body = { name: 'CI 2', scopes: ['jobs:write'] }
    await request(`/v1/keys/${id}`, { method: 'PATCH', body })
    await request(`/v1/keys/${id}/rotate`, { method: 'POST' })
    await request(`/v1/keys/${id}`, { method: 'DELETE' })
    expect(await summaryOf(service)).toEqual([
      ...['key.revoked', 'key.rotated', 'key.updated name,scopes', 'key.created'],
    ])
    const [last] = await entriesOf(service)
    expect(last).toEqual({
      id: expect.stringMatching(/^aud_/),
      action: 'key.revoked',
      actor: 'key',
      key_id: 'key_1',
      person_id: null,
      person_name: null,
      session_id: null,
      ip: '192.0.2.1',
      changed: null,
      target_id: id,
      target_name: 'CI 2',
      created_at: '2026-06-01T12:00:00.000Z',
    })
  })

  test('has the changes of webhooks, with the host of the URL only', async () => {
    const service = await createAudited()
    const { json, request } = service
    const body = { url: 'https://app.test/secret-path', events: ['batch.completed'] }
    const { id } = (await json('/v1/webhooks', { body })).data as { id: string }
    await request(`/v1/webhooks/${id}`, { method: 'PATCH', body: { active: false } })
    await request(`/v1/webhooks/${id}/secret`, { method: 'POST' })
    await request(`/v1/webhooks/${id}`, { method: 'DELETE' })
    expect(await summaryOf(service)).toEqual([
      ...['webhook.deleted', 'webhook.rotated', 'webhook.updated active', 'webhook.created'],
    ])
    const entries = await entriesOf(service)
    expect(new Set(entries.map(({ target_id }) => target_id))).toEqual(new Set([id]))
    expect(entries[0]).toMatchObject({ target_name: 'app.test' })
    expect(JSON.stringify(entries)).not.toContain('secret-path')
  })

  test('has each download of results, but not requests for its headers', async () => {
    const service = await createSimulatedList(['valid@a.example'])
    const { id, path, request } = service
    await request(`${path}/download`, { method: 'HEAD' })
    await request(`${path}/download`)
    await request(`/v1/verify/bulk/download/${id}?format=ndjson`)
    expect(await entriesOf(service)).toMatchObject([
      ...[{ action: 'results.downloaded', target_id: id, key_id: 'key_1' }],
      { action: 'results.downloaded', target_id: id },
    ])
  })

  test('has the session of a request of the dashboard', async () => {
    const service = await createAudited()
    const session = { keyId: 'key_1', sessionId: 'ses_a', secretExpiresAt: null }
    await service.request('/v1/keys', { body: { name: 'CI', scopes: ['*'] }, session })
    expect(await entriesOf(service)).toMatchObject([
      { actor: 'session', session_id: 'ses_a', key_id: 'key_1' },
    ])
  })

  test('has no entry for a change that is refused or repeated', async () => {
    const service = await createAudited()
    const headers = { 'Idempotency-Key': 'once' }
    const body = { name: 'CI', scopes: ['*'] }
    await service.request('/v1/keys', { body, headers })
    await service.request('/v1/keys', { body, headers })
    await service.request('/v1/keys/key_none', { method: 'DELETE' })
    await service.request('/v1/keys', { body: { ...body, expires_at: '2020-01-01T00:00:00Z' } })
    expect(await summaryOf(service)).toEqual(['key.created'])
  })

  test('has no secret', async () => {
    const { json, database } = await createAudited()
    const { data } = await json('/v1/keys', { body: { name: 'CI', scopes: ['*'] } })
    const rows = await database.db.selectFrom('audit').selectAll().execute()
    expect(rows).toHaveLength(1)
    expect(JSON.stringify(rows)).not.toContain((data as { key: string }).key)
  })

  test('is filtered by action and returned in pages', async () => {
    const service = await createAudited()
    const create = () => service.request('/v1/keys', { body: { name: 'CI', scopes: ['*'] } })
    for (let n = 0; n < 3; n++) await create()
    const { data } = await service.json('/v1/audit?limit=2&action=key.created')
    const { items, next_cursor } = data as { items: Entry[]; next_cursor: string }
    const rest = await entriesOf(service, `?limit=2&cursor=${next_cursor}`)
    expect([items.length, rest.length]).toEqual([2, 1])
    expect(await entriesOf(service, '?action=key.revoked')).toEqual([])
    expect(await codeOf(await service.request('/v1/audit?action=key.lost'))).toBe('invalid_request')
  })

  test('is of one account, and needs the scope audit:read', async () => {
    const { request, json, addAccount, addKey } = await createAudited()
    await request('/v1/keys', { body: { name: 'CI', scopes: ['*'] } })
    await addAccount('acc_2')
    const other = await addKey({ accountId: 'acc_2', id: 'key_other' })
    expect((await json('/v1/audit', { key: other })).data).toMatchObject({ items: [] })
    const narrow = await addKey({ scopes: ['account:read', 'keys:write'] })
    expect(await codeOf(await request('/v1/audit', { key: narrow }))).toBe('insufficient_scope')
  })
})
