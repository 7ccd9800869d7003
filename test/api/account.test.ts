import { describe, expect, test } from 'vitest'
import { DAY, HOUR } from '../../src/platform/clock.ts'
import { knows } from '../support/engine.ts'
import { SANDBOX } from '../support/list-service.ts'
import { users } from '../support/recipients.ts'
import { createTestService } from '../support/service.ts'

describe('the account of a key', () => {
  const patch = (body: object, key?: string) => ({ method: 'PATCH', body, ...(key && { key }) })

  test('is read, and renamed or given an address, with an entry in the audit log', async () => {
    const { json } = await createTestService({ plan: 'free' })
    const { data } = await json('/v1/account')
    expect(data).toEqual({
      id: 'acc_1',
      name: 'acc_1',
      plan: 'free',
      email: null,
      admin: false,
      action_policy: null,
      two_factor_required: false,
      created_at: '2026-06-01T12:00:00.000Z',
    })
    const body = { name: ' Shop ', email: 'Owner@Shop.example' }
    const changed = { ...(data as object), name: 'Shop', email: 'Owner@shop.example' }
    expect(await json('/v1/account', patch(body))).toEqual({ success: true, data: changed })
    expect(await json('/v1/account')).toEqual({ success: true, data: changed })
    // Its own name is not taken, and null removes the address.
    expect(await json('/v1/account', patch({ name: 'Shop', email: null }))).toMatchObject({
      data: { name: 'Shop', email: null },
    })
    expect(await json('/v1/audit?action=account.updated')).toMatchObject({
      data: {
        items: Array.from({ length: 2 }, () => ({
          key_id: 'key_1',
          target_id: 'acc_1',
          changed: ['email', 'name'],
        })),
      },
    })
  })

  test('keeps its name if another account has it, whose ID the error does not contain', async () => {
    const { json, request, addAccount } = await createTestService()
    await addAccount('acc_other')
    const refused = await request('/v1/account', patch({ name: 'acc_other' }))
    expect(refused.status).toBe(409)
    expect(await refused.json()).toMatchObject({
      code: 'account_exists',
      error: 'Another account has the name "acc_other". Choose another name.',
    })
    expect(await json('/v1/account')).toMatchObject({ data: { name: 'acc_1' } })
    expect(await json('/v1/audit')).toMatchObject({ data: { items: [] } })
  })

  test.each([
    ['a plan', { plan: 'enterprise' }, '"plan"'],
    ['admin rights', { admin: true }, '"admin"'],
    ['an empty name', { name: ' ' }, '"name"'],
    ['no address', { email: 'owner' }, '"email" is "owner". There is no @'],
    ['an address in quotes', { email: '"a b"@shop.example' }, '"email"'],
  ])('cannot give itself %s', async (_, body, error) => {
    const { request } = await createTestService()
    const refused = await request('/v1/account', patch(body))
    expect(refused.status).toBe(400)
    expect(await refused.json()).toMatchObject({ error: expect.stringContaining(error) })
  })

  test('is changed only with the scope account:write of a live key', async () => {
    const { request, addKey } = await createTestService()
    const reader = await addKey({ scopes: ['account:read'] })
    const tester = await addKey({ kind: 'test' })
    expect((await request('/v1/account', { key: reader })).status).toBe(200)
    for (const key of [reader, tester])
      expect((await request('/v1/account', patch({ name: 'x' }, key))).status).toBe(403)
  })
})

describe('the history', () => {
  test('has a row for each address, with its result', async () => {
    const { json, finished } = await createTestService({ works: true })
    const { job_id } = await json('/v1/verify/batch', { body: { emails: ['ann@a.test'] } })
    await finished(String(job_id))
    expect(await json('/v1/history')).toEqual({
      success: true,
      data: {
        items: [
          {
            id: expect.stringMatching(/^ver_/),
            email: 'ann@a.test',
            valid: true,
            deliverable: true,
            risk_level: 'low',
            reason: 'accepted_email',
            action: 'send',
            cached: false,
            source: 'batch',
            job_id,
            created_at: expect.stringMatching(/^2026-06-01T12:00:00/),
          },
        ],
        next_cursor: null,
        has_more: false,
      },
    })
  })

  test('is sorted newest first, in pages, each row once', async () => {
    const { verify, json, clock } = await createHistory()
    const emails = Array.from({ length: 20 }, (_, n) => `user${n}@a.test`)
    // Three share each timestamp.
    for (let n = 0; n < emails.length; n += 3) {
      await verify(emails.slice(n, n + 3))
      await clock.advance(1)
    }
    const seen: Row[] = []
    let cursor: string | null = ''
    while (cursor !== null) {
      const after: string = cursor === '' ? '' : `&cursor=${cursor}`
      const { data } = (await json(`/v1/history?limit=7${after}`)) as { data: Page }
      seen.push(...data.items)
      expect(data.has_more).toBe(data.next_cursor !== null)
      cursor = data.next_cursor
    }
    expect(seen.map(({ email }) => email).toSorted()).toEqual(emails.toSorted())
    const times = seen.map(({ created_at }) => created_at)
    expect(times).toEqual(times.toSorted().toReversed())
    expect(new Set(seen.map(({ id }) => id)).size).toBe(20)
  })

  test('has no next page after an exactly full one', async () => {
    const { verify, json } = await createHistory()
    await verify(['ann@a.test', 'bob@a.test'])
    expect((await json('/v1/history?limit=2')).data).toMatchObject({
      items: [{}, {}],
      has_more: false,
      next_cursor: null,
    })
  })

  test('is filtered by address, reason, source and time', async () => {
    const { verify, json, clock, submit, finished } = await createHistory()
    await verify(['Ann@a.test'])
    await clock.advance(HOUR)
    await verify(['zoe@a.test'])
    await clock.advance(DAY - HOUR)
    await finished(await submit(['ann@a.test']))
    const found = async (query: string) =>
      ((await json(`/v1/history?${query}`)) as { data: Page }).data.items.map(
        ({ email, source }) => `${email} ${source}`,
      )
    const [first, second, third] = ['Ann@a.test bulk', 'zoe@a.test bulk', 'ann@a.test batch']
    expect(await found('email=ANN@A.TEST')).toEqual([third, first])
    expect(await found('reason=rejected_email')).toEqual([second])
    expect(await found('source=batch')).toEqual([third])
    expect(await found('since=2026-06-01T13:00:00Z')).toEqual([third, second])
    expect(await found('until=2026-06-01T15:00:00%2B02:00')).toEqual([first])
    expect(await found('since=2026-06-02')).toEqual([third])
    expect(await found('email=ann@a.test&source=bulk&until=2026-06-02')).toEqual([first])
    expect(await found('search=NN@a')).toEqual([third, first])
    expect(await found('search=a.test&class=undeliverable,unknown')).toEqual([second])
    expect(await found('class=deliverable')).toEqual([third, first])
    expect(await found('search=nobody')).toEqual([])
  })

  test('of the sandbox is separate', async () => {
    const { verify, json } = await createHistory()
    await verify(['ann@a.test'])
    await json('/v1/verify/single', { body: { email: 'valid@a.test' }, ...SANDBOX })
    const emails = async (headers: Record<string, string>) =>
      ((await json('/v1/history', { headers })) as { data: Page }).data.items.map(row => row.email)
    expect(await emails({})).toEqual(['ann@a.test'])
    expect(await emails(SANDBOX.headers)).toEqual(['valid@a.test'])
  })

  test.each([
    'limit=0',
    'limit=201',
    'reason=good',
    'source=list',
    'since=yesterday',
    'cursor=!',
    'search=',
    'class=good',
  ])('rejects %s', async query => {
    const { request } = await createTestService()
    const response = await request(`/v1/history?${query}`)
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ code: 'invalid_request' })
  })
})

describe('credits', () => {
  test('show what the plan grants, what is used, and when they reset', async () => {
    const { verify, submit, json } = await createHistory({ plan: 'free', works: false })
    await verify(users(5))
    await submit(users(10, 'b.test'))
    expect(await json('/v1/credits')).toEqual({
      success: true,
      data: {
        account_id: 'acc_1',
        api_key_id: 'key_1',
        api_key_name: 'test',
        plan: 'free',
        credits_balance: 85,
        credits_consumed: 5,
        credits_held: 10,
        credits_added: 100,
        period: 'day',
        resets_at: '2026-06-02T00:00:00.000Z',
        last_updated: '2026-06-01T12:00:00.000Z',
      },
    })
  })

  test('of a plan without a limit have no balance', async () => {
    const { json } = await createTestService({ plan: 'enterprise' })
    expect((await json('/v1/credits')).data).toMatchObject({
      plan: 'enterprise',
      credits_balance: null,
      credits_consumed: 0,
      credits_added: null,
    })
  })
})

describe('statistics', () => {
  test('count by day, by class and by key', async () => {
    const { verify, json, clock, addKey, request } = await createHistory()
    const key = await addKey({ id: 'key_b', name: 'CI' })
    // 14, 13, 7 and 6 days before the last day.
    await verify(users(3))
    await clock.advance(DAY)
    await verify(['ann@a.test', 'bob@a.test'])
    await clock.advance(6 * DAY)
    await verify(['ann@a.test'])
    await clock.advance(DAY)
    await verify(['zoe@a.test'])
    await clock.advance(6 * DAY)
    await verify(['ann@a.test', 'nonsense'])
    await verify(['ann@a.test'])
    await json('/v1/verify/bulk', { body: { emails: ['zoe@a.test', 'bob@a.test'] }, key })
    await request('/v1/keys/key_b', { method: 'DELETE' })
    const { data } = (await json('/v1/stats?period=week')) as unknown as { data: Stats }
    expect(data).toMatchObject({
      period: 'week',
      from: '2026-06-09T00:00:00.000Z',
      to: '2026-06-16T00:00:00.000Z',
    })
    expect(data.total).toEqual({
      verifications: 6,
      cached: 1,
      credits: 4,
      deliverable: 3,
      undeliverable: 3,
      risky: 0,
      unknown: 0,
    })
    expect(data.previous).toEqual({
      verifications: 3,
      cached: 0,
      credits: 3,
      deliverable: 3,
      undeliverable: 0,
      risky: 0,
      unknown: 0,
    })
    expect(data.days.map(({ date, verifications }) => [date, verifications])).toEqual([
      ...[
        ['2026-06-09', 1],
        ['2026-06-10', 0],
        ['2026-06-11', 0],
        ['2026-06-12', 0],
      ],
      ...[
        ['2026-06-13', 0],
        ['2026-06-14', 0],
        ['2026-06-15', 5],
      ],
    ])
    expect(data.keys.map(row => [row.key_id, row.key_name, row.verifications])).toEqual([
      ['key_1', 'test', 4],
      ['key_b', null, 2],
    ])
  })

  test('cover today by default, and are zero if nothing was verified', async () => {
    const { json } = await createTestService()
    const { data } = (await json('/v1/stats')) as unknown as { data: Stats }
    expect(data.days).toEqual([{ date: '2026-06-01', ...data.total }])
    expect(Object.values(data.total)).toEqual([0, 0, 0, 0, 0, 0, 0])
    expect(data.keys).toEqual([])
    const month = (await json('/v1/stats?period=month')) as unknown as { data: Stats }
    expect(month.data.days).toHaveLength(30)
  })

  test('reject other periods', async () => {
    const { request } = await createTestService()
    expect((await request('/v1/stats?period=year')).status).toBe(400)
  })
})

/** A service that processes lists; two addresses are known to its mail server, in any case. */
const createHistory = (options: Parameters<typeof createTestService>[0] = {}) =>
  createTestService({ works: true, ...options, engine: { script: knows('ann', 'Ann', 'bob') } })

type Row = { readonly [name in 'id' | 'email' | 'source' | 'created_at']: string }
type Page = { items: Row[]; next_cursor: string | null; has_more: boolean }
type Counts = Record<string, number>
type Stats = {
  total: Counts
  previous: Counts
  days: ({ date: string; verifications: number } & object)[]
  keys: { key_id: string; key_name: string | null; verifications: number }[]
}
