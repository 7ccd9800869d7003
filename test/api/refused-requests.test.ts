import { describe, expect, test } from 'vitest'
import { HOUR } from '../../src/platform/clock.ts'
import { createTestDashboard } from '../support/dashboard.ts'
import { addOneOfEverything } from '../support/owned-rows.ts'
import { createTestService } from '../support/service.ts'

type Service = Awaited<ReturnType<typeof createTestService>>

type Entry = { readonly [name in 'key_id' | 'target_id' | 'target_name']: string | null }

/** The refused requests of an account: by default, of the first one. */
async function entriesIn({ json }: Pick<Service, 'json'>, key?: string) {
  const options = key === undefined ? {} : { key }
  const { data } = await json('/v1/audit?action=request.refused&limit=100', options)
  return (data as { items: Entry[] }).items.map(({ key_id, target_id, target_name }) => [
    ...[key_id, target_id, target_name],
  ])
}

describe('the audit log has a request that was refused for lack of rights', () => {
  test('with the key, the path and the error', async () => {
    const service = await createTestService()
    const { request, addKey } = service
    const narrow = await addKey({ id: 'key_n', scopes: ['jobs:read'] })
    const office = await addKey({ id: 'key_ip', allowedIps: ['10.0.0.0/8'] })
    const site = await addKey({ id: 'key_site', allowedDomains: ['shop.example'] })
    await request('/v1/keys/key_1?force=true', { method: 'DELETE', key: narrow })
    await request('/v1/credits', { key: office })
    await request('/v1/credits', { key: site, headers: { Origin: 'https://other.example' } })
    expect(await entriesIn(service)).toEqual([
      ['key_site', null, 'GET /v1/credits: domain_restricted'],
      ['key_ip', null, 'GET /v1/credits: ip_restricted'],
      ['key_n', null, 'DELETE /v1/keys/{id}: insufficient_scope'],
    ])
  })

  test('also if only the handler knows it', async () => {
    const service = await createTestService()
    const { request, addKey } = service
    const key = await addKey({ id: 'key_n', scopes: ['keys:write', 'jobs:read'] })
    expect((await request('/v1/keys', { body: { name: 'all', scopes: ['*'] }, key })).status).toBe(
      403,
    )
    expect(await entriesIn(service)).toEqual([['key_n', null, 'POST /v1/keys: insufficient_scope']])
  })

  test('for the ID of another account, of each kind', async () => {
    const service = await createTestService({ works: true })
    const { request, addAccount, addKey } = service
    const ids = await addOneOfEverything(service)
    await addAccount('acc_2')
    const key = await addKey({ accountId: 'acc_2', id: 'key_2' })
    const asked = [
      ['GET', 'jobs', ids.job],
      ['GET', 'keys', 'key_1'],
      ['GET', 'webhooks', ids.webhook],
      ['GET', 'schedules', ids.schedule],
      ['GET', 'events', ids.event],
      ['DELETE', 'people', ids.person],
      ['DELETE', 'feedback/sources', ids.source],
    ] as const
    for (const [method, kind, id] of asked) {
      expect((await request(`/v1/${kind}/${id}`, { method, key })).status).toBe(404)
    }
    expect(await entriesIn(service, key)).toEqual(
      asked
        .map(([method, kind, id]) => ['key_2', id, `${method} /v1/${kind}/{id}: not_found`])
        .toReversed(),
    )
  })

  test('of a page, with the session', async () => {
    const dashboard = await createTestDashboard({ signIn: false })
    const { addAccount, addKey, get, json } = dashboard
    await addAccount('acc_2')
    await dashboard.signIn(
      await addKey({ accountId: 'acc_2', id: 'key_2', scopes: ['dashboard', 'account:read'] }),
    )
    const admin = await addKey({ accountId: 'acc_2', id: 'key_3' })
    for (const path of ['/doctor', '/keys', '/audit']) expect((await get(path)).status).toBe(403)
    expect((await json('/v1/audit', { key: admin })).data).toMatchObject({
      items: [
        { actor: 'session', target_name: 'GET /v1/audit: insufficient_scope' },
        { actor: 'session', target_name: 'GET /keys: 403' },
        { actor: 'session', target_name: 'GET /doctor: 403' },
        { action: 'session.started' },
      ],
    })
  })
})

describe('it has no entry', () => {
  test.each([
    ['for a request without a valid key', { key: 'ev_live_unknown' }, '/v1/jobs/job_a'],
    ['for an unknown ID', {}, '/v1/jobs/job_none'],
    ['for an ID of no known kind', {}, '/v1/jobs/else_1'],
    ['for a path that does not exist', {}, '/v1/nothing'],
    ['for an invalid request', {}, '/v1/jobs?limit=x'],
  ])('%s', async (_, options, path) => {
    const service = await createTestService()
    expect((await service.request(path, options)).status).toBeGreaterThanOrEqual(400)
    expect(await entriesIn(service)).toEqual([])
  })
})

test('of an account 20 are recorded in an hour, and the others counted', async () => {
  const service = await createTestService()
  const { request, addKey, addAccount, clock } = service
  const key = await addKey({ id: 'key_n', scopes: ['jobs:read'] })
  await addAccount('acc_2')
  const other = await addKey({ accountId: 'acc_2', id: 'key_2', scopes: ['jobs:read'] })
  const omitted = async () => {
    const text = await (await request('/metrics', { key: null, ip: '127.0.0.1' })).text()
    return /^ev_audit_entries_omitted_total (\d+)$/m.exec(text)?.[1]
  }
  for (let n = 0; n < 25; n++) expect((await request('/v1/credits', { key })).status).toBe(403)
  expect([(await entriesIn(service)).length, await omitted()]).toEqual([20, '5'])
  await request('/v1/credits', { key: other })
  const office = await addKey({ accountId: 'acc_2', id: 'key_3' })
  expect(await entriesIn(service, office)).toHaveLength(1)
  await clock.advance(HOUR + 1)
  await request('/v1/credits', { key })
  expect([(await entriesIn(service)).length, await omitted()]).toEqual([21, '5'])
})

test('a refused request keeps its error if the audit log cannot be written', async () => {
  const service = await createTestService()
  const key = await service.addKey({ id: 'key_n', scopes: ['jobs:read'] })
  await service.database.db.schema.dropTable('audit').execute()
  expect((await service.request('/v1/credits', { key })).status).toBe(403)
  expect(service.lines.map(({ message }) => message)).toContain(
    'a refused request could not be written to the audit log',
  )
})
