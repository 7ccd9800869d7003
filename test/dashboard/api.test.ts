import { describe, expect, test } from 'vitest'
import type { Credits } from '../../src/client/types.ts'
import { ApiProblem, apiFor } from '../../src/dashboard/api.ts'
import type { Api } from '../../src/dashboard/deps.ts'
import { createTestDashboard } from '../support/dashboard.ts'

/** Creates the API as a page uses it. */
async function apiOf(services: Awaited<ReturnType<typeof createTestDashboard>>): Promise<Api> {
  const [session] = await services.service.database.db.selectFrom('session').selectAll().execute()
  const settings = services.service.settings
  const request = new Request(`${settings.baseUrl}/usage`)
  const c = { env: {}, req: { raw: request, header: () => undefined } }
  const app = {
    fetch: (asked: Request, bindings: object) => services.app.fetch(asked, bindings as never),
  }
  return apiFor(
    c as never,
    { app, settings },
    {
      keyId: session?.key_id ?? '',
      sessionId: session?.id ?? '',
      secretExpiresAt: null,
    },
  )
}

describe('an API call of a page', () => {
  test('is aborted when the client disconnects', () => {
    const disconnecting = new AbortController()
    const raw = new Request('https://ev.test/usage', { signal: disconnecting.signal })
    const asked: Request[] = []
    const app = {
      fetch(one: Request) {
        asked.push(one)
        return new Response('{}')
      },
    }
    const c = { env: {}, req: { raw, header: () => undefined } }
    const settings = { baseUrl: 'https://ev.test', version: '', dataDir: '' }
    const session = { keyId: 'key_1', sessionId: 'ses_1', secretExpiresAt: null }
    const api = apiFor(c as never, { app, settings }, session)
    void api.ask('/v1/credits')
    expect(asked[0]?.signal.aborted).toBe(false)
    disconnecting.abort()
    expect(asked[0]?.signal.aborted).toBe(true)
  })

  test('has the IP address of the client, behind a trusted proxy too', async () => {
    const services = await createTestDashboard({
      signIn: false,
      settings: { trustProxy: ['192.0.2.1'] },
    })
    const key = await services.addKey({ allowedIps: ['198.51.100.0/24'] })
    const headers = { 'X-Forwarded-For': '203.0.113.9, 198.51.100.7' }
    await services.fetch('/sign-in', {
      method: 'POST',
      body: new URLSearchParams({ key }),
      headers,
    })
    expect((await services.get('/webhooks', headers)).status).toBe(200)
    const elsewhere = { 'X-Forwarded-For': '198.51.100.7, 203.0.113.9' }
    expect((await services.get('/webhooks', elsewhere)).status).toBe(303)
  })

  test('is on this machine only if no proxy forwarded its request', async () => {
    const { fetch } = await createTestDashboard({ plan: 'free' })
    const limits = async (headers: Record<string, string> = {}) =>
      (await fetch('/usage', { ip: '127.0.0.1', headers })).text()
    expect(await limits()).not.toContain('Lists from your IP address')
    expect(await limits({ Forwarded: 'for=192.0.2.9' })).toContain('Lists from your IP address')
  })

  test('uses the key of the session', async () => {
    const api = await apiOf(await createTestDashboard())
    const { data } = await api.ask<{ data: Credits['data'] }>('/v1/credits')
    expect(data.account_id).toBe('acc_1')
  })

  test('omits undefined query parameters and escapes the others', async () => {
    const api = await apiOf(await createTestDashboard())
    const page = api.ask('/v1/history', { query: { search: 'a&b=c', cursor: null, limit: 1 } })
    await expect(page).resolves.toMatchObject({ success: true, data: { items: [] } })
  })

  test('throws the error text and code of the API', async () => {
    const api = await apiOf(await createTestDashboard())
    const refusal = await api.ask('/v1/jobs/job_none').catch(error => error)
    expect(refusal).toBeInstanceOf(ApiProblem)
    expect(refusal).toMatchObject({ status: 404, code: 'not_found' })
  })
})
