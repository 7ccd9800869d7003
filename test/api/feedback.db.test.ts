import { describe, expect, test } from 'vitest'
import { mergePlans } from '../../src/accounts/plan.ts'
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

describe('GET /v1/feedback/report', () => {
  /** Verifies and sends; of three messages, one to an accepted address bounces. */
  async function sendThree() {
    const service = await createTestService()
    const { json, clock } = service
    const first = { email: 'first@a.test', kind: 'delivered' }
    await json('/v1/feedback', { body: { items: [first] } })
    const emails = ['ann@a.test', 'bob@a.test', 'nobody@a.test']
    for (const email of emails) await json('/v1/verify/single', { body: { email } })
    await clock.advance(1_000)
    const items = [{ ...BOUNCE }, { email: 'bob@a.test', kind: 'delivered' }, { ...BOUNCE }]
    for (const [index, item] of items.entries()) item.email = emails[index] ?? ''
    await json('/v1/feedback', { body: { items } })
    return service
  }

  test('compares verdicts with their outcomes, and counts what was received', async () => {
    const { json, clock } = await sendThree()
    expect(await json('/v1/feedback/report')).toMatchObject({
      success: true,
      data: {
        total: { count: 3, observed: 0.6667 },
        outcomes: { predicted_bounces: 1, missed_bounces: 1, kept_deliveries: 1 },
        reasons: [
          { reason: 'accepted_email', count: 2, observed: 0.5 },
          { reason: 'rejected_email', count: 1, observed: 1 },
        ],
        received: [
          {
            date: new Date(clock.now()).toISOString().slice(0, 10),
            source: 'api',
            delivered: 2,
            bounced: 2,
            complained: 0,
          },
        ],
      },
    })
  })

  test('is of the own account, empty in the sandbox, and needs the scope feedback:read', async () => {
    const { json, request, addAccount, addKey } = await sendThree()
    const none = { data: { total: { count: 0 }, bins: [], operators: [], received: [] } }
    const headers = { 'X-EV-Sandbox': 'true' }
    expect(await json('/v1/feedback/report', { headers })).toMatchObject(none)
    await addAccount('acc_2')
    const key = await addKey({ accountId: 'acc_2' })
    expect(await json('/v1/feedback/report', { key })).toMatchObject(none)
    const narrow = await addKey({ scopes: ['feedback:write'] })
    expect((await request('/v1/feedback/report', { key: narrow })).status).toBe(403)
  })
})

test('a key needs the scope feedback:write', async () => {
  const { request, addKey } = await createTestService()
  const key = await addKey({ scopes: ['account:read'] })
  const response = await request('/v1/feedback', { key, body: { items: [BOUNCE] } })
  expect(response.status).toBe(403)
})

describe('later verifications of the account', () => {
  const reported = { items: [{ ...BOUNCE, email: 'ann@a.test', text: '550 5.1.1 User unknown' }] }

  test('use the feedback, and their evidence says so', async () => {
    const { json, clock } = await createTestService()
    const { class: before } = await json('/v1/verify/single', { body: { email: 'ann@a.test' } })
    expect(before).toBe('deliverable')
    await clock.advance(1_000)
    await json('/v1/feedback', { body: reported })
    const day = new Date(clock.now()).toISOString().slice(0, 10)
    const body = { email: 'ann@a.test' }
    expect(await json('/v1/verify/single?include=evidence', { body })).toMatchObject({
      class: 'undeliverable',
      reason: 'rejected_email',
      deliverable: false,
      evidence: { feedback: { summary: `bounced on ${day}`, code: 550, decides: true } },
    })
    expect(await json('/v1/verify/bulk', { body: { emails: ['ann@a.test'] } })).toMatchObject({
      results: [{ email: 'ann@a.test', reason: 'rejected_email' }],
    })
  })

  test('of another account, and in the sandbox, do not use it', async () => {
    const { json, addAccount, addKey } = await createTestService()
    await json('/v1/feedback', { body: reported })
    await addAccount('acc_2')
    const key = await addKey({ accountId: 'acc_2' })
    const body = { email: 'ann@a.test' }
    expect((await json('/v1/verify/single', { key, body })).reason).toBe('accepted_email')
    const headers = { 'X-EV-Sandbox': 'true' }
    const simulated = { email: 'valid@a.test' }
    const sandbox = { items: [{ ...BOUNCE, email: 'valid@a.test' }] }
    await json('/v1/feedback', { body: sandbox })
    expect((await json('/v1/verify/single', { headers, body: simulated })).reason).toBe(
      'accepted_email',
    )
  })
})

test('feedback that is sent to the sandbox is checked, and changes nothing', async () => {
  const { json, database } = await createTestService()
  const headers = { 'X-EV-Sandbox': 'true' }
  const body = { items: [BOUNCE, { email: 'broken', kind: 'delivered' }] }
  expect(await json('/v1/feedback', { headers, body })).toMatchObject({
    data: { received: 2, recorded: 1, rejected: [{ index: 1 }] },
  })
  expect(await database.db.selectFrom('feedback').selectAll().execute()).toEqual([])
})

describe('the limit of stored feedback', () => {
  const items = (count: number) =>
    Array.from({ length: count }, (_, index) => ({ ...BOUNCE, email: `user${index}@a.test` }))

  const limited = () => {
    const plans = mergePlans({ free: { storedFeedback: 2 } })
    return createTestService({ plan: 'free', settings: { plans } })
  }

  test('refuses a request as a whole, and is one of GET /v1/limits', async () => {
    const { json, request } = await limited()
    const refused = await request('/v1/feedback', { body: { items: items(3) } })
    expect([refused.status, refused.headers.get('Retry-After')]).toEqual([429, '3600'])
    expect(await refused.json()).toMatchObject({
      code: 'stored_rows_exceeded',
      error: expect.stringMatching(
        /^The account stores 0 pieces of feedback, 3 more cannot be recorded, and the Free plan allows 2\./,
      ),
    })
    expect(await json('/v1/feedback', { body: { items: items(2) } })).toMatchObject({
      data: { recorded: 2 },
    })
    const { data } = await json('/v1/limits')
    expect((data as { limits: unknown[] }).limits).toContainEqual({
      name: 'stored_feedback',
      text: 'Stored feedback of your account',
      limit: 2,
      remaining: 0,
      window_seconds: null,
      resets_at: null,
    })
  })

  test('does not refuse a repeated request, nor the sandbox', async () => {
    const { json } = await limited()
    const body = { items: items(2) }
    await json('/v1/feedback', { body })
    expect(await json('/v1/feedback', { body })).toMatchObject({ data: { duplicates: 2 } })
    const headers = { 'X-EV-Sandbox': 'true' }
    expect(await json('/v1/feedback', { headers, body: { items: items(9) } })).toMatchObject({
      data: { recorded: 9 },
    })
  })
})
