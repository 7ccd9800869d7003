import { describe, expect, test } from 'vitest'
import { createTestDashboard } from '../support/dashboard.ts'

type TestDashboard = Awaited<ReturnType<typeof createTestDashboard>>

const entriesIn = ({ database }: TestDashboard) =>
  database.db
    .selectFrom('audit')
    .select(['action', 'account_id', 'key_id', 'session_id', 'target_id', 'target_name', 'ip'])
    .orderBy('id')
    .execute()

describe('the audit log has', () => {
  test('each sign-in and sign-out with the key and the address', async () => {
    const dashboard = await createTestDashboard()
    const { id } = await dashboard.database.db
      .selectFrom('session')
      .select('id')
      .executeTakeFirstOrThrow()
    await dashboard.post('/sign-out')
    const session = { account_id: 'acc_1', key_id: 'key_1', session_id: id, target_id: id }
    expect(await entriesIn(dashboard)).toEqual([
      { ...session, action: 'session.started', target_name: 'test', ip: '192.0.2.1' },
      { ...session, action: 'session.ended', target_name: null, ip: '192.0.2.1' },
    ])
  })

  test('each refused sign-in, with the key if it is known', async () => {
    const dashboard = await createTestDashboard({ signIn: false })
    const narrow = await dashboard.addKey({ id: 'key_n', name: 'narrow', scopes: ['jobs:read'] })
    for (const key of [narrow, 'ev_live_unknown']) {
      const body = new URLSearchParams({ key })
      await dashboard.fetch('/sign-in', { method: 'POST', body })
    }
    expect(await entriesIn(dashboard)).toMatchObject([
      { action: 'session.refused', account_id: 'acc_1', key_id: 'key_n', target_name: 'narrow' },
      { action: 'session.refused', account_id: null, key_id: null, target_id: null },
    ])
  })
})

describe('the page', () => {
  test('shows who did what, and filters by action', async () => {
    const dashboard = await createTestDashboard()
    const { request } = dashboard
    await request('/v1/keys', { body: { name: '<b>CI</b>', scopes: ['jobs:read'] } })
    const all = (await dashboard.get('/audit')).text
    expect(all).toContain('<th scope="row">Key created</th>')
    expect(all).toContain('<th scope="row">Signed in</th>')
    expect(all).toContain('&lt;b&gt;CI&lt;/b&gt;')
    expect(all).toContain('192.0.2.1')
    const { text } = await dashboard.get('/audit?action=session.started')
    expect(text).not.toContain('<th scope="row">Key created</th>')
    expect(text).toContain('<th scope="row">Signed in</th>')
    const { text: none } = await dashboard.get('/audit?action=key.revoked')
    expect(none).toContain('No matching entries.')
  })

  test('keeps the form of a day that is out of range, and names its field', async () => {
    const { get } = await createTestDashboard()
    const { status, text } = await get('/audit?since=20266-01-01')
    expect(status).toBe(400)
    expect(text).toContain('value="20266-01-01"')
    expect(text).toContain('&quot;From (UTC)&quot; in the query is')
  })

  test('is closed to a key without the scope, and not in its menu', async () => {
    const dashboard = await createTestDashboard({ signIn: false })
    await dashboard.signIn(await dashboard.addKey({ scopes: ['dashboard', 'account:read'] }))
    expect((await dashboard.get('/audit')).status).toBe(403)
    expect((await dashboard.get('/usage')).text).not.toContain('href="/audit"')
  })
})
