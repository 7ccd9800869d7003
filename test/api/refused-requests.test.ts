import { describe, expect, test } from 'vitest'
import { getAuditPage } from '../../src/audit.ts'
import { HOUR } from '../../src/platform/clock.ts'
import { createTestDashboard } from '../support/dashboard.ts'
import { addOneOfEverything } from '../support/owned-rows.ts'
import { createTestService } from '../support/service.ts'

type Service = Awaited<ReturnType<typeof createTestService>>

const entriesIn = async ({ database }: Pick<Service, 'database'>) =>
  (await getAuditPage(database, { accountId: null, before: null, max: 100 }))
    .filter(({ action }) => action === 'request.refused')
    .map(({ account_id, key_id, target_id, target_name }) => [
      ...[account_id, key_id, target_id, target_name],
    ])

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
      ['acc_1', 'key_site', null, 'GET /v1/credits: domain_restricted'],
      ['acc_1', 'key_ip', null, 'GET /v1/credits: ip_restricted'],
      ['acc_1', 'key_n', null, 'DELETE /v1/keys/{id}: insufficient_scope'],
    ])
  })

  test('also if only the handler knows it', async () => {
    const service = await createTestService()
    const { request, addKey } = service
    const key = await addKey({ id: 'key_n', scopes: ['keys:write', 'jobs:read'] })
    expect((await request('/v1/keys', { body: { name: 'all', scopes: ['*'] }, key })).status).toBe(
      403,
    )
    expect(await entriesIn(service)).toEqual([
      ['acc_1', 'key_n', null, 'POST /v1/keys: insufficient_scope'],
    ])
  })

  test('for the ID of another account, of each kind', async () => {
    const service = await createTestService()
    const { request, addAccount, addKey, database } = service
    await addOneOfEverything(service)
    const { id: event } = await database.db
      .selectFrom('event')
      .select('id')
      .executeTakeFirstOrThrow()
    await addAccount('acc_2')
    const key = await addKey({ accountId: 'acc_2', id: 'key_2' })
    const asked = [
      ...['/v1/jobs/job_a', '/v1/keys/key_1', '/v1/webhooks/wh_a', '/v1/schedules/sch_a'],
      `/v1/events/${event}`,
    ]
    for (const path of asked) expect((await request(path, { key })).status).toBe(404)
    for (const path of ['/v1/people/per_a', '/v1/feedback/sources/fbs_a']) {
      expect((await request(path, { method: 'DELETE', key })).status).toBe(404)
    }
    expect(await entriesIn(service)).toEqual(
      [
        ['job_a', 'GET /v1/jobs/{id}'],
        ['key_1', 'GET /v1/keys/{id}'],
        ['wh_a', 'GET /v1/webhooks/{id}'],
        ['sch_a', 'GET /v1/schedules/{id}'],
        [event, 'GET /v1/events/{id}'],
        ['per_a', 'DELETE /v1/people/{id}'],
        ['fbs_a', 'DELETE /v1/feedback/sources/{id}'],
      ]
        .map(([id, path]) => ['acc_2', 'key_2', id, `${path}: not_found`])
        .toReversed(),
    )
  })

  test('of a page, with the session', async () => {
    const dashboard = await createTestDashboard({ signIn: false })
    const { addAccount, addKey, get, database } = dashboard
    await addAccount('acc_2')
    await dashboard.signIn(
      await addKey({ accountId: 'acc_2', id: 'key_2', scopes: ['dashboard', 'account:read'] }),
    )
    for (const path of ['/doctor', '/keys', '/audit']) expect((await get(path)).status).toBe(403)
    const entries = await getAuditPage(database, { accountId: 'acc_2', before: null, max: 9 })
    expect(entries).toMatchObject([
      { actor: 'session', target_name: 'GET /v1/audit: insufficient_scope' },
      { actor: 'session', target_name: 'GET /keys: 403' },
      { actor: 'session', target_name: 'GET /doctor: 403' },
      { action: 'session.started' },
    ])
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
  expect((await entriesIn(service)).length).toBe(21)
  await clock.advance(HOUR + 1)
  await request('/v1/credits', { key })
  expect([(await entriesIn(service)).length, await omitted()]).toEqual([22, '5'])
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
