import { expect, test } from 'vitest'
import { createTestService } from '../support/service.ts'

const BOUNCE = { email: 'ann@example.com', kind: 'bounced', code: 550, enhanced_code: '5.1.1' }

test('POST /v1/feedback records items, and a repeated request changes nothing', async () => {
  const { json, clock } = await createTestService()
  const occurred_at = new Date(clock.now()).toISOString()
  const body = {
    items: [
      { ...BOUNCE, occurred_at },
      { email: 'broken', kind: 'delivered' },
    ],
  }
  const rejected = [{ index: 1, error: expect.stringMatching(/^The address is invalid/) }]
  expect(await json('/v1/feedback', { body })).toEqual({
    success: true,
    data: { received: 2, recorded: 1, duplicates: 0, rejected },
  })
  expect(await json('/v1/feedback', { body })).toMatchObject({
    data: { recorded: 0, duplicates: 1 },
  })
})

test.each([
  ['no items', { items: [] }],
  ['too many items', { items: Array.from({ length: 1_001 }, () => BOUNCE) }],
  ['an unknown kind', { items: [{ ...BOUNCE, kind: 'opened' }] }],
  ['a time that is none', { items: [{ ...BOUNCE, occurred_at: 'yesterday' }] }],
])('%s are refused', async (_, body) => {
  const { request } = await createTestService()
  expect((await request('/v1/feedback', { body })).status).toBe(400)
})

test('a key needs the scope feedback:write', async () => {
  const { request, addKey } = await createTestService()
  const key = await addKey({ scopes: ['feedback:read'] })
  const response = await request('/v1/feedback', { key, body: { items: [BOUNCE] } })
  expect(response.status).toBe(403)
})
