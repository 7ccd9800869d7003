import { describe, expect, test } from 'vitest'
import { createTestDashboard } from '../support/dashboard.ts'

describe('an error', () => {
  test('is shown above the unchanged page for a request of htmx', async () => {
    const services = await createTestDashboard()
    const headers = { 'HX-Request': 'true', 'HX-Target': 'log' }
    const refused = await services.get('/webhooks/wh_none', headers)
    expect(refused.status).toBe(404)
    expect(refused.headers.get('HX-Retarget')).toBe('#notes')
    expect(refused.headers.get('HX-Reselect')).toBe('.notice')
    expect(refused.text).toContain('role="alert"')
    expect(refused.text).not.toContain('<html')
  })

  test('is rendered as a page with the text of the API otherwise', async () => {
    const services = await createTestDashboard()
    const refused = await services.get('/lists/job_none')
    expect([refused.status, refused.headers.get('HX-Retarget')]).toEqual([404, null])
    expect(refused.text).toContain('<h1>Not found</h1>')
  })

  test('of a missing scope explains the remedy', async () => {
    const services = await createTestDashboard({ signIn: false })
    await services.signIn(await services.addKey({ scopes: ['dashboard'] }))
    const refused = await services.get('/lists/job_none')
    expect(refused.status).toBe(403)
    expect(refused.text).toContain('does not have the scope jobs:read')
    expect(refused.text).toContain('Sign in with a key that has the scope')
  })

  test('inside ev shows only a request ID, which is in the log', async () => {
    const health = {
      alert: () => {
        throw new Error('a secret of the inside')
      },
    }
    const services = await createTestDashboard({ signIn: false, health })
    await services.database.db.updateTable('account').set({ operator: 1 }).execute()
    await services.signIn()
    const failed = await services.get('/sessions')
    expect(failed.status).toBe(500)
    expect(failed.text).toContain('<h1>Something went wrong</h1>')
    expect(failed.text).not.toContain('a secret of the inside')
    const id = /req_\w+/.exec(failed.text)?.[0]
    expect(services.lines).toContainEqual(
      expect.objectContaining({
        level: 'error',
        fields: expect.objectContaining({ requestId: id, why: 'a secret of the inside' }),
      }),
    )
  })
})
