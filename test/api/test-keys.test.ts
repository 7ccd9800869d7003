import { describe, expect, test } from 'vitest'
import { codeOf } from '../support/guarded-route.ts'
import { createHalfwayList } from '../support/list-service.ts'
import { createTestService } from '../support/service.ts'

type Made = { id: string; key: string; prefix: string; test: boolean }

describe('a test key', () => {
  test('is created on request, keeps its kind when it is rotated, and is shown as such', async () => {
    const { json } = await createTestService()
    const body = { name: 'CI', scopes: ['*'], test: true }
    const made = (await json('/v1/keys', { body })).data as Made
    expect(made).toMatchObject({ key: expect.stringMatching(/^ev_test_/), test: true })
    expect((await json(`/v1/keys/${made.id}`)).data).toMatchObject({
      prefix: made.key.slice(0, 12),
      test: true,
    })
    const rotated = await json(`/v1/keys/${made.id}/rotate`, { method: 'POST' })
    expect(rotated.data).toMatchObject({ key: expect.stringMatching(/^ev_test_/), test: true })
    const live = await json('/v1/keys', { body: { name: 'Shop', scopes: ['*'] } })
    expect(live.data).toMatchObject({ key: expect.stringMatching(/^ev_live_/), test: false })
  })

  test.each([{}, { 'X-EV-Sandbox': 'false' }])(
    'verifies in the sandbox without credits, with the headers %j',
    async headers => {
      const { json, addKey, mx } = await createTestService({ plan: 'free' })
      const key = await addKey({ kind: 'test' })
      const body = { email: 'valid@a.example' }
      expect(await json('/v1/verify', { body, key, headers })).toMatchObject({
        status: 'deliverable',
        sandbox: true,
      })
      await json('/v1/verify/bulk', { body: { emails: ['risky@a.example'] }, key, headers })
      expect((await json('/v1/credits', { key })).data).toMatchObject({ credits_consumed: 0 })
      expect((await json('/v1/history', { key })).data).toMatchObject({ items: [{}, {}] })
      expect((await json('/v1/history')).data).toMatchObject({ items: [] })
      expect(mx.sessions).toEqual([])
    },
  )

  test('does not see the audit log, which names the live keys and downloads', async () => {
    const { request, addKey } = await createTestService()
    const key = await addKey({ kind: 'test' })
    const response = await request('/v1/audit', { key })
    expect([response.status, await codeOf(response)]).toEqual([403, 'insufficient_scope'])
  })

  test('sees only jobs of the sandbox', async () => {
    const { path, json, request, addKey } = await createHalfwayList()
    const key = await addKey({ kind: 'test' })
    for (const one of [path, `${path}/download?partial=true`, `${path}/results`]) {
      expect((await request(one)).status).toBe(200)
      expect((await request(one, { key })).status).toBe(404)
    }
    expect((await request(path, { method: 'DELETE', key })).status).toBe(404)
    expect((await json('/v1/jobs', { key })).data).toMatchObject({ items: [] })
    const emails = Array.from({ length: 11 }, (_, n) => `valid${n}@a.example`)
    const { job_id } = await json('/v1/verify/bulk', { body: { emails }, key })
    expect((await request(`/v1/jobs/${job_id}`, { key })).status).toBe(200)
  })

  test('manages only test keys, and creates no others', async () => {
    const { json, request, addKey } = await createTestService()
    const key = await addKey({ id: 'key_t', kind: 'test' })
    const create = (more: object) =>
      request('/v1/keys', { body: { name: 'CI', scopes: ['*'], ...more }, key })
    expect(await codeOf(await create({ test: false }))).toBe('insufficient_scope')
    const form = { scopes: undefined, publishable: true, allowed_domains: ['a.example'] }
    expect(await codeOf(await create(form))).toBe('insufficient_scope')
    expect(((await (await create({})).json()) as { data: Made }).data.test).toBe(true)
    for (const [method, path] of [
      ['POST', '/v1/keys/key_1/rotate'],
      ['DELETE', '/v1/keys/key_1?force=true'],
    ] as const) {
      expect(await codeOf(await request(path, { method, key }))).toBe('insufficient_scope')
    }
    expect((await json('/v1/keys/key_t/rotate', { method: 'POST', key })).success).toBe(true)
  })

  test('cannot be publishable, and reports no feedback', async () => {
    const { request, addKey } = await createTestService()
    const body = { name: 'a', publishable: true, test: true, allowed_domains: ['a.example'] }
    expect(await codeOf(await request('/v1/keys', { body }))).toBe('invalid_request')
    const key = await addKey({ kind: 'test' })
    const items = [{ email: 'ann@a.example', outcome: 'delivered' }]
    const response = await request('/v1/feedback', { body: { items }, key })
    expect(await codeOf(response)).toBe('insufficient_scope')
  })
})
