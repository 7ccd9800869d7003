import { describe, expect, test } from 'vitest'
import { cancelJob } from '../../../src/jobs/job-state.ts'
import { MIXED, seedJob } from '../../support/job-rows.ts'
import { createTestService } from '../../support/service.ts'

type Row = { readonly row: number; readonly email: string; readonly [name: string]: unknown }
type Page = { readonly items: Row[]; readonly next_cursor: string | null; has_more: boolean }

const RESULTS = '/v1/jobs/job_a/results'

const NOTHING = {
  ...{ class: null, valid: null, deliverable: null, risk_level: null, reason: null, cached: null },
  ...{ confidence: null, did_you_mean: null, operator: null, mx_host: null },
  ...{ smtp_code: null, smtp_text: null, checked_at: null },
}

describe('the rows of a job', () => {
  test('are in the order of the list, with null where there is no result yet', async () => {
    const { database, json } = await createTestService()
    await seedJob(database, { texts: MIXED, done: 4 })
    expect(await json(`${RESULTS}?after=3&limit=2`)).toEqual({
      success: true,
      data: {
        items: [
          {
            ...{ row: 4, email: 'timeout@a.example', class: 'unknown', valid: false },
            ...{ deliverable: false, risk_level: 'unknown', reason: 'timeout', cached: false },
            ...{ confidence: 20, did_you_mean: null, operator: null, mx_host: null },
            ...{ smtp_code: null, smtp_text: null, checked_at: '2026-06-01T12:00:00.000Z' },
          },
          { row: 5, email: 'error-server@a.example', ...NOTHING },
        ],
        ...{ next_cursor: expect.any(String), has_more: true },
      },
    })
  })

  test('have the sanitized reply of the mail server', async () => {
    const { database, json } = await createTestService()
    await seedJob(database, { texts: ['valid@a.example'] })
    const { result } = await database.db
      .selectFrom('item')
      .select('result')
      .executeTakeFirstOrThrow()
    const known = JSON.parse(result ?? '')
    const reply = { code: 250, enhanced: '2.1.5', text: 'Ok\r\n\u001b[2Jof course' }
    const answer = { kind: 'accepted', why: 'recipient', stage: 'rcpt', reply }
    const route = { kind: 'mx', hosts: [{ preference: 10, host: 'mx.a.example' }] }
    const asked = { operator: { name: 'example.net' }, suggestion: 'v@b.example', route, answer }
    const changed = JSON.stringify({ ...known, evidence: { ...known.evidence, ...asked } })
    await database.db.updateTable('item').set({ result: changed }).execute()
    expect((await json(RESULTS)).data).toMatchObject({
      items: [
        {
          ...{ operator: 'example.net', mx_host: 'mx.a.example', did_you_mean: 'v@b.example' },
          ...{ smtp_code: 250, smtp_text: 'Ok \ufffd[2Jof course' },
        },
      ],
    })
  })

  test('are returned in pages, each row once', async () => {
    const { database, json } = await createTestService()
    const texts = Array.from({ length: 7 }, (_, n) => `valid${n + 1}@a.example`)
    await seedJob(database, { texts })
    const pages: number[][] = []
    for (let cursor = ''; ; ) {
      const { data } = (await json(`${RESULTS}?limit=3${cursor}`)) as unknown as { data: Page }
      pages.push(data.items.map(({ row }) => row))
      expect(data.has_more).toBe(data.next_cursor !== null)
      if (data.next_cursor === null) break
      cursor = `&cursor=${data.next_cursor}`
    }
    expect(pages).toEqual([[1, 2, 3], [4, 5, 6], [7]])
  })

  test.each([
    ['class=risky', [2, 6]],
    ['class=risky,%20unknown', [2, 4, 5, 6]],
    ['class=', [1, 2, 3, 4, 5, 6]],
    ['reason=role_account,timeout', [4, 6]],
    ['reason=timeout&class=risky', []],
    ['search=VALID', [1, 3]],
    ['search=%20Valid@A%20', [1, 3]],
    ['search=', [1, 2, 3, 4, 5, 6]],
    ['search=valid&class=undeliverable', [3]],
    ['search=nobody', []],
    ['after=4', [5, 6]],
    ['after=6', []],
  ])('are filtered by %s', async (query, rows) => {
    const { database, json } = await createTestService()
    await seedJob(database, { texts: MIXED })
    const { data } = (await json(`${RESULTS}?${query}`)) as unknown as { data: Page }
    expect(data.items.map(({ row }) => row)).toEqual(rows)
    expect(data).toMatchObject({ next_cursor: null, has_more: false })
  })

  test('are also available for a cancelled job', async () => {
    const { database, json } = await createTestService()
    await seedJob(database, { texts: MIXED, done: 1 })
    await cancelJob(database, 'job_a')
    const { data } = (await json(`${RESULTS}?class=deliverable`)) as unknown as { data: Page }
    expect(data.items.map(({ row }) => row)).toEqual([1])
  })

  test('keep the position and class of an erased address, and nothing else', async () => {
    const { database, json } = await createTestService()
    await seedJob(database, { texts: ['mailbox-full@a.example'] })
    await database.db.updateTable('item').set({ result: 'null', text: '' }).execute()
    expect((await json(RESULTS)).data).toMatchObject({
      items: [
        {
          ...NOTHING,
          ...{ row: 1, email: '', class: 'risky', valid: true, deliverable: false },
          ...{ risk_level: 'medium', reason: 'low_deliverability', cached: false, confidence: 0 },
          erased: true,
        },
      ],
    })
  })

  test('have the address as it is spelled in the row, not as in its first occurrence', async () => {
    const { database, json } = await createTestService()
    await seedJob(database, { texts: ['valid@A.example', 'valid@a.example'] })
    const { data } = (await json(RESULTS)) as unknown as { data: Page }
    expect(data.items.map(({ email, reason }) => [email, reason])).toEqual([
      ['valid@A.example', 'accepted_email'],
      ['valid@a.example', 'accepted_email'],
    ])
  })

  test('are searched in a long list with several requests, some of which find nothing', async () => {
    const { database, json } = await createTestService()
    await seedJob(database, { texts: ['valid@a.example'] })
    await database.db.updateTable('item').set({ position: 150_000 }).execute()
    const first = (await json(`${RESULTS}?search=valid`)) as unknown as { data: Page }
    expect(first.data).toMatchObject({ items: [], has_more: true })
    const cursor = first.data.next_cursor
    expect((await json(`${RESULTS}?search=valid&cursor=${cursor}`)).data).toMatchObject({
      items: [{ row: 150_000 }],
      ...{ next_cursor: null, has_more: false },
    })
  })

  test.each([
    [
      'class=good',
      /"class" in the query is "good"; it must be one or more of deliverable, undeliverable, risky, unknown/,
    ],
    ['class=risky;unknown', /"class" in the query/],
    [
      'reason=late',
      /"reason" in the query is "late"; it must be one or more of accepted_email, role_account/,
    ],
    ['limit=0', /"limit"/],
    ['limit=501', /"limit"/],
    ['after=-1', /"after"/],
    ['after=1.5', /"after"/],
    ['cursor=abc', /"cursor" must be the `next_cursor` of an earlier response/],
    ['cursor=WzFlOV0', /"cursor"/],
    ['after=1&cursor=WzFd', /"cursor" and "after" both/],
    [`search=${'a'.repeat(1_001)}`, /"search"/],
  ])('reject %s', async (query, error) => {
    const { database, request } = await createTestService()
    await seedJob(database, { texts: MIXED })
    const response = await request(`${RESULTS}?${query}`)
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({
      ...{ code: 'invalid_request', error: expect.stringMatching(error) },
    })
  })

  test('are shown to a key that may read jobs, and to no other', async () => {
    const { database, request, addKey } = await createTestService()
    await seedJob(database, { texts: MIXED })
    const reader = await addKey({ scopes: ['jobs:read'] })
    const other = await addKey({ scopes: ['jobs:write', 'account:read'] })
    expect((await request(RESULTS, { key: reader })).status).toBe(200)
    expect((await request(RESULTS, { key: other })).status).toBe(403)
    expect((await request('/v1/jobs/job_none/results')).status).toBe(404)
  })
})
