import { describe, expect, test } from 'vitest'
import { codeOf } from '../support/guarded-route.ts'
import { fc, runs } from '../support/property.ts'
import { createTestService } from '../support/service.ts'

const SHOP = { name: 'Shop', plan: 'starter', email: 'owner@shop.example' }

describe('an admin account', () => {
  test('creates an account, gives it a key, and changes its plan', async () => {
    const { json, request, clock } = await createTestService({ isAdmin: true })
    const created = await request('/v1/accounts', { body: SHOP })
    const account = ((await created.json()) as { data: { id: string } }).data
    const { id } = account
    expect(created.status).toBe(201)
    expect(created.headers.get('Location')).toBe(`/v1/accounts/${id}`)
    expect(account).toEqual({
      ...SHOP,
      id: expect.stringMatching(/^acc_/),
      admin: false,
      action_policy: null,
      two_factor_required: false,
      created_at: '2026-06-01T12:00:00.000Z',
    })
    const body = { name: 'CI', scopes: ['account:read'] }
    const { key } = (await json(`/v1/accounts/${id}/keys`, { body })).data as { key: string }
    expect((await json('/v1/credits', { key })).data).toMatchObject({
      account_id: id,
      plan: 'starter',
      credits_added: null,
    })
    const patch = { plan: 'free', email: null }
    expect(await json(`/v1/accounts/${id}`, { method: 'PATCH', body: patch })).toMatchObject({
      data: { id, name: 'Shop', plan: 'free', email: null },
    })
    await clock.advance(1_000)
    expect((await json('/v1/credits', { key })).data).toMatchObject({ credits_added: 100 })
    expect(await json(`/v1/accounts/${id}`)).toMatchObject({ data: { id, plan: 'free' } })
  })

  test('lists accounts page by page, newest first, and the plans', async () => {
    const { json, clock } = await createTestService({ isAdmin: true })
    for (const name of ['A', 'B', 'C']) {
      await clock.advance(1_000)
      await json('/v1/accounts', { body: { name, plan: 'free' } })
    }
    const names: string[] = []
    let cursor: string | null = ''
    while (cursor !== null) {
      const { data } = (await json(`/v1/accounts?limit=3${cursor && `&cursor=${cursor}`}`)) as {
        data: { items: { name: string }[]; next_cursor: string | null }
      }
      names.push(...data.items.map(({ name }) => name))
      cursor = data.next_cursor
    }
    expect(names.slice(0, 3)).toEqual(['C', 'B', 'A'])
    expect(names).toHaveLength(4)
    const { plans } = (await json('/v1/plans')).data as { plans: { name: string }[] }
    expect(plans).toHaveLength(4)
    expect(plans[0]).toEqual({
      name: 'free',
      requests: 10,
      window_seconds: 60,
      credits_per_day: 100,
      concurrent_jobs: 10,
      stored_rows: 100_000,
      stored_feedback: 100_000,
      keys: 10,
    })
  })

  test('makes another account an admin, and the change is in the audit log', async () => {
    const { json, request, addAccount, addKey, clock } = await createTestService({ isAdmin: true })
    await addAccount('acc_2')
    const key = await addKey({ accountId: 'acc_2', id: 'key_2' })
    expect((await request('/v1/accounts', { key })).status).toBe(403)
    await request('/v1/accounts/acc_2', { method: 'PATCH', body: { admin: true } })
    await clock.advance(1_000)
    expect((await request('/v1/accounts', { key })).status).toBe(200)
    expect((await json('/v1/audit?action=account.updated', { key })).data).toMatchObject({
      items: [{ action: 'account.updated', key_id: 'key_1', changed: ['admin'] }],
    })
    // A change of nothing is not a change.
    await request('/v1/accounts/acc_2', { method: 'PATCH', body: {} })
    const { data } = await json('/v1/audit?action=account.updated', { key })
    expect((data as { items: object[] }).items).toHaveLength(1)
  })

  test('creates an account once if the request is repeated with its Idempotency-Key', async () => {
    const { request, json } = await createTestService({ isAdmin: true })
    const options = { headers: { 'Idempotency-Key': 'a' }, body: SHOP }
    const first = await (await request('/v1/accounts', options)).json()
    expect(await (await request('/v1/accounts', options)).json()).toEqual(first)
    expect(((await json('/v1/accounts')).data as { items: object[] }).items).toHaveLength(2)
  })

  test.each([
    ['a plan that does not exist', { ...SHOP, plan: 'huge' }, 400, 'invalid_request'],
    ['an address that is none', { ...SHOP, email: 'owner' }, 400, 'invalid_request'],
    ['an empty name', { ...SHOP, name: ' ' }, 400, 'invalid_request'],
    ['an unknown field', { ...SHOP, admin: true }, 400, 'invalid_request'],
    ['a name that is in use', { ...SHOP, name: 'Other' }, 409, 'account_exists'],
  ])('cannot create one with %s', async (_, body, status, code) => {
    const { request, json } = await createTestService({ isAdmin: true })
    await json('/v1/accounts', { body: { ...SHOP, name: 'Other' } })
    const response = await request('/v1/accounts', { body })
    expect([response.status, await codeOf(response)]).toEqual([status, code])
    expect(((await json('/v1/accounts')).data as { items: object[] }).items).toHaveLength(2)
  })

  test.each([
    ['GET', '/v1/accounts/acc_none', undefined],
    ['PATCH', '/v1/accounts/acc_none', { plan: 'free' }],
    ['POST', '/v1/accounts/acc_none/keys', { name: 'CI', scopes: ['*'] }],
  ])('gets 404 for an account that does not exist: %s %s', async (method, path, body) => {
    const { request } = await createTestService({ isAdmin: true })
    const response = await request(path, { method, ...(body && { body }) })
    expect([response.status, await codeOf(response)]).toEqual([404, 'not_found'])
  })

  test('cannot give another account a key with more rights than its own', async () => {
    const { request, addAccount, addKey } = await createTestService({ isAdmin: true })
    await addAccount('acc_2')
    const key = await addKey({ id: 'key_a', scopes: ['accounts:write', 'jobs:read'] })
    const ask = (scopes: string[]) =>
      request('/v1/accounts/acc_2/keys', { key, body: { name: 'CI', scopes } })
    expect((await ask(['jobs:read'])).status).toBe(201)
    const refused = await ask(['verify:bulk'])
    expect([refused.status, await codeOf(refused)]).toEqual([403, 'insufficient_scope'])
  })
})

describe('a key gives an account nothing that it lacks', () => {
  test('a key of a sign-up service sets plans up to its own, and makes no admin', async () => {
    const { request, addAccount, addKey } = await createTestService({
      isAdmin: true,
      plan: 'free',
    })
    await addAccount('acc_2')
    const key = await addKey({ id: 'key_a', scopes: ['accounts:write'] })
    const patch = async (id: string, body: object, by = key) => {
      const response = await request(`/v1/accounts/${id}`, { method: 'PATCH', body, key: by })
      return response.status
    }
    // The account of the key has the Free plan.
    expect(await patch('acc_2', { plan: 'free' })).toBe(200)
    expect(await patch('acc_2', { plan: 'starter' })).toBe(403)
    for (const admin of [true, false]) {
      expect(await patch('acc_2', { admin })).toBe(403)
      expect(await patch('acc_1', { admin })).toBe(403)
    }
    const created = await request('/v1/accounts', { key, body: { ...SHOP, plan: 'enterprise' } })
    expect([created.status, await codeOf(created)]).toEqual([403, 'insufficient_scope'])
    const restricted = await addKey({ id: 'key_b', scopes: ['*'], rateLimitPerMinute: 60 })
    expect(await patch('acc_2', { admin: true }, restricted)).toBe(403)
  })

  test('whatever keys do to accounts and keys, none of them gains a right', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(anyStep, { minLength: 1, maxLength: 12 }), async steps => {
        const { request, json, addAccount, addKey, clock } = await createTestService({
          isAdmin: true,
          plan: 'free',
        })
        await addAccount('acc_2')
        await addAccount('acc_3')
        // The sign-up service, in the account of the admin, and the key of a customer.
        const keys = [
          await addKey({ id: 'key_s', scopes: ['accounts:write'] }),
          await addKey({ id: 'key_c', accountId: 'acc_2', scopes: ['*'] }),
        ]
        for (const { by, method, path, body } of steps) {
          const key = keys[by % keys.length] as string
          const response = await request(path, { method, body, key })
          const { data } = (await response.json()) as { data?: { key?: string } }
          if (data?.key !== undefined) keys.push(data.key)
          await clock.advance(60_000)
        }
        const { items } = (await json('/v1/accounts')).data as { items: Managed[] }
        for (const { id, admin, plan } of items) {
          expect([id, admin]).toEqual([id, id === 'acc_1'])
          expect(plan).toBe('free')
        }
        for (const key of keys.slice(2)) {
          const history = await request('/v1/history', { key })
          const { data } = (await (await request('/v1/credits', { key })).json()) as {
            data?: { account_id: string }
          }
          // Only keys of the customer see anything, and only of their account.
          if (history.status === 200) expect(data?.account_id ?? 'acc_2').toBe('acc_2')
        }
      }),
      { numRuns: runs(30) },
    )
  })

  type Managed = { readonly id: string; readonly admin: boolean; readonly plan: string }

  const anyId = fc.constantFrom('acc_1', 'acc_2', 'acc_3')
  const anyScopes = fc.subarray(['*', 'accounts:write', 'jobs:read', 'account:read'] as const, {
    minLength: 1,
  })
  const anyPatch = fc.record(
    { admin: fc.boolean(), plan: fc.constantFrom('free', 'starter', 'enterprise') },
    { requiredKeys: [] },
  )
  const anyStep = fc.record({ by: fc.nat(5) }).chain(({ by }) =>
    fc.oneof(
      fc.record({
        by: fc.constant(by),
        method: fc.constant('PATCH'),
        path: anyId.map(id => `/v1/accounts/${id}`),
        body: anyPatch,
      }),
      fc.record({
        by: fc.constant(by),
        method: fc.constant('POST'),
        path: anyId.map(id => `/v1/accounts/${id}/keys`),
        body: anyScopes.map(scopes => ({ name: 'x', scopes })),
      }),
      fc.record({
        by: fc.constant(by),
        method: fc.constant('POST'),
        path: fc.constant('/v1/keys'),
        body: anyScopes.map(scopes => ({ name: 'x', scopes })),
      }),
    ),
  )
})

describe('accounts cannot be managed with', () => {
  const PATHS = [
    ...['GET /v1/accounts', 'POST /v1/accounts', 'GET /v1/accounts/acc_1', 'GET /v1/plans'],
    ...['PATCH /v1/accounts/acc_1', 'POST /v1/accounts/acc_1/keys'],
  ]

  test.each<[string, object]>([
    ['a key of an account that is no admin', { accountId: 'acc_2' }],
    ['a key without the scope', { scopes: ['keys:write' as const, 'account:read' as const] }],
    ['a test key', { kind: 'test' }],
  ])('%s', async (_, rights) => {
    const { request, json, addKey, addAccount } = await createTestService({ isAdmin: true })
    await addAccount('acc_2')
    const key = await addKey({ id: 'key_a', ...rights })
    for (const one of PATHS) {
      const [method = '', path = ''] = one.split(' ')
      const response = await request(path, { key, method, ...(method !== 'GET' && { body: {} }) })
      const answer = [one, response.status, await codeOf(response)]
      expect(answer).toEqual([one, 403, 'insufficient_scope'])
    }
    expect((await json('/v1/accounts')).data).toMatchObject({ items: [{}, {}] })
  })
})
