import { describe, expect, test } from 'vitest'
import { reserveCredits, settleCredits } from '../../src/accounts/credits/credit-store.ts'
import { addHistory, type Verification } from '../../src/accounts/credits/history.ts'
import { addUsage } from '../../src/accounts/credits/usage.ts'
import { periodStart } from '../../src/accounts/plan.ts'
import { type Database, write } from '../../src/db/database.ts'
import { SCANNED_MAX } from '../../src/db/paging.ts'
import { DAY, HOUR } from '../../src/platform/clock.ts'
import { verificationRow } from '../support/account-rows.ts'
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
    const { database, json } = await createTestService()
    await add(database, [{ id: 'ver_1', source: 'batch', job_id: 'job_a', cached: 1 }])
    expect(await json('/v1/history')).toEqual({
      success: true,
      data: {
        items: [
          {
            id: 'ver_1',
            email: 'ann@a.test',
            valid: true,
            deliverable: true,
            risk_level: 'low',
            reason: 'accepted_email',
            action: 'send',
            cached: true,
            source: 'batch',
            job_id: 'job_a',
            created_at: '2026-06-01T12:00:00.000Z',
          },
        ],
        next_cursor: null,
        has_more: false,
      },
    })
  })

  test('is sorted newest first, in pages, each row once', async () => {
    const { database, json } = await createTestService()
    const now = database.clock.now()
    // Three share each timestamp.
    const ids = Array.from({ length: 20 }, (_, n) => `ver_${String(n).padStart(2, '0')}`)
    await add(
      database,
      ids.map((id, n) => ({ id, created_at: now + Math.floor(n / 3) })),
    )
    const seen: string[] = []
    let cursor: string | null = ''
    while (cursor !== null) {
      const after: string = cursor === '' ? '' : `&cursor=${cursor}`
      const { data } = (await json(`/v1/history?limit=7${after}`)) as { data: Page }
      seen.push(...data.items.map(row => row.id))
      expect(data.has_more).toBe(data.next_cursor !== null)
      cursor = data.next_cursor
    }
    expect(seen).toEqual(ids.toReversed())
  })

  test('has no next page after an exactly full one', async () => {
    const { database, json } = await createTestService()
    await add(database, [{ id: 'ver_1' }, { id: 'ver_2' }])
    expect((await json('/v1/history?limit=2')).data).toMatchObject({
      has_more: false,
      next_cursor: null,
    })
  })

  test('is filtered by address, reason, source and time', async () => {
    const { database, json } = await createTestService()
    const now = database.clock.now()
    await add(database, [
      { id: 'ver_1', email: 'Ann@a.test', created_at: now },
      {
        id: 'ver_2',
        email: 'bob@a.test',
        created_at: now + HOUR,
        reason: 'catch_all',
        class: 'risky',
      },
      { id: 'ver_3', email: 'ann@a.test', created_at: now + DAY, source: 'batch' },
    ])
    const ids = async (query: string) =>
      ((await json(`/v1/history?${query}`)) as { data: Page }).data.items.map(row => row.id)
    expect(await ids('email=ANN@A.TEST')).toEqual(['ver_3', 'ver_1'])
    expect(await ids('reason=catch_all')).toEqual(['ver_2'])
    expect(await ids('source=batch')).toEqual(['ver_3'])
    expect(await ids('since=2026-06-01T13:00:00Z')).toEqual(['ver_3', 'ver_2'])
    expect(await ids('until=2026-06-01T15:00:00%2B02:00')).toEqual(['ver_1'])
    expect(await ids('since=2026-06-02')).toEqual(['ver_3'])
    expect(await ids('email=ann@a.test&source=single&until=2026-06-02')).toEqual(['ver_1'])
    expect(await ids('search=NN@a')).toEqual(['ver_3', 'ver_1'])
    expect(await ids('search=a.test&class=risky,unknown')).toEqual(['ver_2'])
    expect(await ids('class=deliverable')).toEqual(['ver_3', 'ver_1'])
    expect(await ids('search=nobody')).toEqual([])
  })

  test('that is long is searched in several requests: a page may be empty, and the last one has no next page', async () => {
    const { database, json } = await createTestService()
    const [rows, now] = [SCANNED_MAX + 5, database.clock.now()]
    const id = (n: number) => `ver_${String(n).padStart(8, '0')}`
    for (let from = 0; from < rows; from += 10_000) {
      const ids = Array.from({ length: Math.min(10_000, rows - from) }, (_, n) => id(from + n))
      await add(
        database,
        ids.map(one => ({
          id: one,
          created_at: now,
          ...(one === id(2) && { email: 'ben@b.test' }),
        })),
      )
    }
    const ask = async (cursor = '') =>
      ((await json(`/v1/history?search=ben@${cursor}`)) as { data: Page }).data
    const first = await ask()
    expect(first).toMatchObject({ items: [], has_more: true, next_cursor: expect.any(String) })
    expect(await ask(`&cursor=${first.next_cursor}`)).toMatchObject({
      items: [{ id: id(2) }],
      has_more: false,
      next_cursor: null,
    })
  })

  test('of the sandbox is separate', async () => {
    const { database, json } = await createTestService()
    await add(database, [{ id: 'ver_1' }, { id: 'ver_sbx_2', sandbox: 1 }])
    const ids = async (headers: Record<string, string>) =>
      ((await json('/v1/history', { headers })) as { data: Page }).data.items.map(row => row.id)
    expect(await ids({})).toEqual(['ver_1'])
    expect(await ids({ 'X-EV-Sandbox': 'true' })).toEqual(['ver_sbx_2'])
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
    const { database, json } = await createTestService({ plan: 'free' })
    const period = periodStart(database.clock.now())
    await write(database, async trx => {
      const account = { accountId: 'acc_1', period }
      await reserveCredits(trx, { ...account, amount: 15, limit: 100 })
      await settleCredits(trx, { ...account, released: 5, used: 5 })
    })
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
    const { database, json, addKey } = await createTestService()
    await addKey({ id: 'key_b', name: 'CI' })
    const today = periodStart(database.clock.now())
    await write(database, trx =>
      addUsage(trx, [
        use('key_1', today, 'deliverable', 5, 2),
        use('key_1', today, 'unknown', 1, 0),
        use('key_b', today, 'risky', 2, 0),
        use('key_gone', today - 6 * DAY, 'undeliverable', 4, 0),
        use('key_1', today - 7 * DAY, 'deliverable', 100, 0),
        use('key_1', today - 13 * DAY, 'risky', 10, 10),
        use('key_1', today - 14 * DAY, 'deliverable', 1_000, 0),
      ]),
    )
    const { data } = (await json('/v1/stats?period=week')) as unknown as { data: Stats }
    expect(data).toMatchObject({
      period: 'week',
      from: '2026-05-26T00:00:00.000Z',
      to: '2026-06-02T00:00:00.000Z',
    })
    expect(data.total).toEqual({
      verifications: 12,
      cached: 2,
      credits: 10,
      deliverable: 5,
      undeliverable: 4,
      risky: 2,
      unknown: 1,
    })
    expect(data.previous).toEqual({
      verifications: 110,
      cached: 10,
      credits: 100,
      deliverable: 100,
      undeliverable: 0,
      risky: 10,
      unknown: 0,
    })
    expect(data.days.map(({ date, verifications }) => [date, verifications])).toEqual([
      ...[
        ['2026-05-26', 4],
        ['2026-05-27', 0],
        ['2026-05-28', 0],
        ['2026-05-29', 0],
      ],
      ...[
        ['2026-05-30', 0],
        ['2026-05-31', 0],
        ['2026-06-01', 8],
      ],
    ])
    expect(data.keys.map(row => [row.key_id, row.key_name, row.verifications])).toEqual([
      ...[
        ['key_1', 'test', 6],
        ['key_b', 'CI', 2],
        ['key_gone', null, 4],
      ],
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

type Page = { items: { id: string }[]; next_cursor: string | null; has_more: boolean }
type Counts = Record<string, number>
type Stats = {
  total: Counts
  previous: Counts
  days: ({ date: string; verifications: number } & object)[]
  keys: { key_id: string; key_name: string | null; verifications: number }[]
}

const use = (
  key_id: string,
  day: number,
  klass: string,
  verifications: number,
  cached: number,
) => ({
  account_id: 'acc_1',
  key_id,
  day,
  class: klass,
  verifications,
  cached,
  credits: verifications - cached,
})

/** Adds verifications of now. */
const add = (database: Database, rows: readonly Partial<Verification>[]) =>
  write(database, trx =>
    addHistory(
      trx,
      rows.map(row => verificationRow({ created_at: database.clock.now(), ...row })),
    ),
  )
