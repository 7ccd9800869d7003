import { describe, expect, test } from 'vitest'
import { createTestDashboard } from '../support/dashboard.ts'

describe('what went wrong', () => {
  test('is told above the page where a part of it was asked for, which stays as it is', async () => {
    const services = await createTestDashboard()
    const headers = { 'HX-Request': 'true', 'HX-Target': 'log' }
    const refused = await services.get('/webhooks/wh_none', headers)
    expect(refused.status).toBe(404)
    expect(refused.headers.get('HX-Retarget')).toBe('#notes')
    expect(refused.headers.get('HX-Reselect')).toBe('.notice')
    expect(refused.text).toContain('role="alert"')
    expect(refused.text).not.toContain('<html')
  })

  test('is a page with the sentence of the API, else', async () => {
    const services = await createTestDashboard()
    const refused = await services.get('/lists/job_none')
    expect([refused.status, refused.headers.get('HX-Retarget')]).toEqual([404, null])
    expect(refused.text).toContain('<h1>Not found</h1>')
  })

  test('for want of a scope says what to do', async () => {
    const services = await createTestDashboard({ signIn: false })
    await services.signIn(await services.addKey({ scopes: ['dashboard'] }))
    const refused = await services.get('/lists/job_none')
    expect(refused.status).toBe(403)
    expect(refused.text).toContain('lacks the scope jobs:read')
    expect(refused.text).toContain('Sign in with a key that has it')
  })

  test('inside ev is told by an id that stands in the log, and not by what it was', async () => {
    const health = {
      trouble: () => {
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
