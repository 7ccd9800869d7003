import { describe, expect, test } from 'vitest'
import { codeOf } from '../support/guarded-route.ts'
import { createTestService } from '../support/service.ts'

// Accounts and their keys, as an admin account manages them, on both databases.

type Service = Awaited<ReturnType<typeof createTestService>>
type Account = { readonly id: string; readonly name: string; readonly [field: string]: unknown }
type Key = { readonly id: string; readonly key: string; readonly [field: string]: unknown }

const SHOP = { name: ' Shop ', plan: 'free', email: ' Owner@SHOP.example' }
const SECOND = 1_000

const createAdmin = () => createTestService({ isAdmin: true, settings: { limits: false } })

const accountsOf = async ({ json }: Service) =>
  ((await json('/v1/accounts')).data as { items: Account[] }).items

/** An account with a key, and functions for its keys. */
async function createShop() {
  const service = await createAdmin()
  const { json, request } = service
  const { id } = (await json('/v1/accounts', { body: SHOP })).data as Account
  const path = `/v1/accounts/${id}/keys`
  const newKey = async (body: object = {}) =>
    (await json(path, { body: { name: 'CI', scopes: ['*'], ...body } })).data as Key
  const works = async (key: string) => (await request('/v1/credits', { key })).status === 200
  const owner = await newKey()
  return { ...service, id, path, newKey, works, owner }
}

describe('an account', () => {
  test('has a trimmed name and a normalized address, and keeps the last valid change', async () => {
    const service = await createAdmin()
    const { json, request } = service
    const { id, ...created } = (await json('/v1/accounts', { body: SHOP })).data as Account
    expect(created).toMatchObject({ name: 'Shop', email: 'Owner@shop.example', admin: false })
    const patch = (body: object) => request(`/v1/accounts/${id}`, { method: 'PATCH', body })
    for (const body of [{ plan: 'starter' }, { email: 'ops@b.example' }, { admin: true }]) {
      expect((await patch(body)).status).toBe(200)
    }
    for (const body of [{ plan: 'huge' }, { email: 'ops' }, { name: 'a\nb' }]) {
      expect((await patch(body)).status).toBe(400)
    }
    expect((await accountsOf(service)).find(one => one.id === id)).toMatchObject({
      name: 'Shop',
      plan: 'starter',
      email: 'ops@b.example',
      admin: true,
    })
    await patch({ email: null })
    expect((await json(`/v1/accounts/${id}`)).data).toMatchObject({ email: null })
  })

  test('has its name alone, also of two that are created at the same time', async () => {
    const service = await createAdmin()
    const both = await Promise.all(
      [1, 2].map(() => service.request('/v1/accounts', { body: SHOP })),
    )
    expect(both.map(({ status }) => status).toSorted()).toEqual([201, 409])
    for (const change of [{ name: ' ' }, { plan: 'huge' }, { email: 'owner' }]) {
      const response = await service.request('/v1/accounts', { body: { ...SHOP, ...change } })
      expect(response.status).toBe(400)
    }
    expect((await accountsOf(service)).map(({ name }) => name).toSorted()).toEqual([
      'Shop',
      'acc_1',
    ])
  })
})

describe('the keys of an account', () => {
  test('work from when they are created until they are revoked, for their account alone', async () => {
    const { newKey, works, owner, request, json, addAccount, addKey } = await createShop()
    const unknown = `ev_live_${'a'.repeat(32)}`
    expect(await works(unknown)).toBe(false)
    const { id, key } = await newKey({ name: 'Second' })
    expect(await works(key)).toBe(true)
    await addAccount('acc_2')
    const foreign = await addKey({ accountId: 'acc_2', id: 'key_2' })
    const own = { key: foreign }
    expect((await request(`/v1/keys/${id}`, own)).status).toBe(404)
    expect((await request(`/v1/keys/${id}`, { ...own, method: 'DELETE' })).status).toBe(404)
    expect((await request(`/v1/keys/${id}/rotate`, { ...own, method: 'POST' })).status).toBe(404)
    const rename = { ...own, method: 'PATCH', body: { name: 'mine' } }
    expect((await request(`/v1/keys/${id}`, rename)).status).toBe(404)
    const revoke = { method: 'DELETE', key: owner.key }
    // Requests that read the key while it is revoked do not keep it.
    const [response] = await Promise.all([request(`/v1/keys/${id}`, revoke), works(key)])
    expect(response.status).toBe(204)
    expect(await works(key)).toBe(false)
    expect((await request(`/v1/keys/${id}`, { method: 'DELETE', key: owner.key })).status).toBe(404)
    const { data } = await json('/v1/keys', { key: owner.key })
    expect((data as { keys: Key[] }).keys.map(one => one.id)).toEqual([owner.id])
  })

  test('are limited by the plan, also under concurrency', async () => {
    const { path, newKey, request, json, owner } = await createShop()
    const { keys: max = 0 } = (
      (await json('/v1/plans')).data as { plans: { name: string; keys: number }[] }
    ).plans.find(({ name }) => name === SHOP.plan) ?? { keys: 0 }
    expect(max).toBeGreaterThan(2)
    for (let n = 2; n < max; n++) await newKey()
    const create = () => request(path, { body: { name: 'CI', scopes: ['*'] } })
    const three = await Promise.all([create(), create(), create()])
    expect(three.map(({ status }) => status).toSorted()).toEqual([201, 400, 400])
    expect((await create()).status).toBe(400)
    const { data } = await json('/v1/keys', { key: owner.key })
    const [first] = (data as { keys: Key[] }).keys.filter(({ id }) => id !== owner.id)
    await request(`/v1/keys/${first?.id}`, { method: 'DELETE', key: owner.key })
    expect((await create()).status).toBe(201)
  })

  test('change only in the named fields, and have valid names and expiries', async () => {
    const { path, newKey, request, json, owner, clock } = await createShop()
    const { id } = await newKey()
    const get = async () => (await json(`/v1/keys/${id}`, { key: owner.key })).data
    const patch = async (body: object) =>
      (await request(`/v1/keys/${id}`, { method: 'PATCH', body, key: owner.key })).status
    const before = await get()
    const change = { name: 'Shop', allowed_ips: ['192.0.2.0/24'], rate_limit_per_minute: 30 }
    expect(await patch(change)).toBe(200)
    expect(await get()).toEqual({ ...(before as object), ...change })
    const past = new Date(clock.now()).toISOString()
    for (const wrong of [
      ...['', ' ', 'x'.repeat(101), 'two\nlines', 'red\u001b[31m'].map(name => ({ name })),
      { expires_at: past },
    ]) {
      expect(await patch(wrong)).toBe(400)
      const body = { name: 'CI', scopes: ['*'], ...wrong }
      expect((await request(path, { body })).status).toBe(400)
    }
    expect(await get()).toEqual({ ...(before as object), ...change })
  })

  test('keep the ends of earlier grace periods when they are rotated again', async () => {
    const { newKey, works, request, clock, owner } = await createShop()
    const first = await newKey()
    const rotate = async (grace_period_seconds: number) => {
      const o = { body: { grace_period_seconds }, key: owner.key }
      const response = await request(`/v1/keys/${first.id}/rotate`, o)
      return ((await response.json()) as { data: Key }).data.key
    }
    const second = await rotate(10)
    await clock.advance(5 * SECOND)
    const third = await rotate(90)
    expect(await Promise.all([first.key, second, third].map(works))).toEqual([true, true, true])
    await clock.advance(5 * SECOND)
    expect(await Promise.all([first.key, second, third].map(works))).toEqual([false, true, true])
    const fourth = await rotate(0)
    expect(await Promise.all([second, third, fourth].map(works))).toEqual([false, false, true])
  })

  test('cannot be given more rights than the key that manages them has', async () => {
    const { newKey, request, json } = await createShop()
    const rights = { allowed_ips: ['192.0.2.0/24'], rate_limit_per_minute: 60 }
    const small = await newKey({ scopes: ['keys:write', 'jobs:read'], ...rights })
    const key = small.key
    const body = { name: 'CI', scopes: ['jobs:read'] }
    const { data } = await json('/v1/keys', { body, key })
    expect(data).toMatchObject({ scopes: ['jobs:read'], ...rights })
    for (const more of [{ scopes: ['*'] }, { allowed_ips: [] }, { rate_limit_per_minute: null }]) {
      const response = await request('/v1/keys', { body: { ...body, ...more }, key })
      expect([response.status, await codeOf(response)]).toEqual([403, 'insufficient_scope'])
    }
    const big = await newKey({ name: 'Big' })
    for (const [method, path, patch] of [
      ['PATCH', '', { name: 'mine' }],
      ['POST', '/rotate', undefined],
      ['DELETE', '?force=true', undefined],
    ] as const) {
      const o = { method, key, ...(patch && { body: patch }) }
      expect((await request(`/v1/keys/${big.id}${path}`, o)).status, method).toBe(403)
    }
  })

  test('lose the last one only by force, whatever keys for forms are left', async () => {
    const { newKey, request, owner } = await createShop()
    const form = { publishable: true, scopes: undefined, allowed_domains: ['example.com'] }
    const publishable = await newKey(form)
    expect(publishable.key).toMatch(/^ev_pub_/)
    const path = `/v1/keys/${owner.id}`
    const refused = await request(path, { method: 'DELETE', key: owner.key })
    expect([refused.status, await codeOf(refused)]).toEqual([409, 'last_key'])
    const forced = await request(`${path}?force=true`, { method: 'DELETE', key: owner.key })
    expect(forced.status).toBe(204)
  })

  test('have the time of their last use, never an earlier one', async () => {
    const { newKey, json, owner, clock, works } = await createShop()
    const { id, key } = await newKey()
    const lastUsed = async () =>
      ((await json(`/v1/keys/${id}`, { key: owner.key })).data as Key).last_used_at
    expect(await lastUsed()).toBeNull()
    expect(await works(key)).toBe(true)
    const used = clock.now()
    while ((await lastUsed()) === null) await clock.advance(SECOND)
    expect(Date.parse(String(await lastUsed()))).toBeGreaterThanOrEqual(used)
  })
})
