import { describe, expect, test } from 'vitest'
import { toRecipients } from '../../support/engine.ts'
import { MIXED } from '../../support/job-rows.ts'
import { createHalfwayList, createSimulatedList } from '../../support/list-service.ts'
import { createTestService } from '../../support/service.ts'

type Row = { readonly row: number; readonly email: string; readonly [name: string]: unknown }
type Page = { readonly items: Row[]; readonly next_cursor: string | null; has_more: boolean }

const NOTHING = {
  class: null,
  action: null,
  action_reason: null,
  valid: null,
  deliverable: null,
  risk_level: null,
  reason: null,
  cached: null,
  confidence: null,
  did_you_mean: null,
  operator: null,
  mx_host: null,
  smtp_code: null,
  smtp_text: null,
  checked_at: null,
  checked_by: null,
}

describe('the rows of a job', () => {
  test('are in the order of the list, with null where there is no result yet', async () => {
    const { path, json } = await createHalfwayList()
    expect(await json(`${path}/results?after=1&limit=2`)).toEqual({
      success: true,
      data: {
        items: [
          {
            row: 2,
            email: 'risky@a.test',
            class: 'risky',
            action: 'send_with_care',
            action_reason: expect.stringMatching(/did not confirm the mailbox/),
            valid: true,
            deliverable: false,
            risk_level: 'medium',
            reason: 'low_deliverability',
            cached: false,
            confidence: 50,
            did_you_mean: null,
            operator: 'a.test',
            mx_host: 'mx.a.test',
            smtp_code: 252,
            smtp_text: 'Cannot verify the user',
            checked_at: '2026-06-01T12:00:00.000Z',
            checked_by: 'ev',
          },
          { row: 3, email: 'user0@held.test', ...NOTHING },
        ],
        next_cursor: expect.any(String),
        has_more: true,
      },
    })
  })

  test('have the sanitized reply of the mail server', async () => {
    const { submit, finished, json } = await createTestService({
      works: true,
      engine: {
        script: toRecipients(to =>
          to === 'ann@a.test' ? '250 2.1.5 Ok\u001b[2Jof course' : '550 5.1.1 No such user',
        ),
      },
    })
    const id = await submit(['ann@a.test'])
    await finished(id)
    expect((await json(`/v1/jobs/${id}/results`)).data).toMatchObject({
      items: [
        {
          operator: 'a.test',
          mx_host: 'mx.a.test',
          smtp_code: 250,
          smtp_text: 'Ok\ufffd[2Jof course',
        },
      ],
    })
  })

  test('are returned in pages, each row once', async () => {
    const texts = Array.from({ length: 7 }, (_, n) => `valid${n + 1}@a.example`)
    const { path, json } = await createSimulatedList(texts)
    const pages: number[][] = []
    for (let cursor = ''; ; ) {
      const { data } = (await json(`${path}/results?limit=3${cursor}`)) as unknown as { data: Page }
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
    const { path, json } = await createSimulatedList(MIXED)
    const { data } = (await json(`${path}/results?${query}`)) as unknown as { data: Page }
    expect(data.items.map(({ row }) => row)).toEqual(rows)
    expect(data).toMatchObject({ next_cursor: null, has_more: false })
  })

  test('are also available for a cancelled job', async () => {
    const { path, request, json } = await createHalfwayList()
    await request(`${path}/cancel`, { method: 'POST' })
    const { data } = (await json(`${path}/results?class=deliverable`)) as unknown as { data: Page }
    expect(data.items.map(({ row }) => row)).toEqual([1])
  })

  test('keep the position and class of an erased address, and nothing else', async () => {
    const { path, json, database } = await createSimulatedList(['mailbox-full@a.example'])
    await database.db.updateTable('item').set({ result: 'null', text: '' }).execute()
    expect((await json(`${path}/results`)).data).toMatchObject({
      items: [
        {
          ...NOTHING,
          row: 1,
          email: '',
          class: 'risky',
          action: 'send_with_care',
          action_reason: expect.stringMatching(/did not confirm the mailbox/),
          valid: true,
          deliverable: false,
          risk_level: 'medium',
          reason: 'low_deliverability',
          cached: false,
          confidence: 0,
          erased: true,
        },
      ],
    })
  })

  test('have the address as it is spelled in the row, not as in its first occurrence', async () => {
    const { path, json } = await createSimulatedList(['valid@A.example', 'valid@a.example'])
    const { data } = (await json(`${path}/results`)) as unknown as { data: Page }
    expect(data.items.map(({ email, reason }) => [email, reason])).toEqual([
      ['valid@A.example', 'accepted_email'],
      ['valid@a.example', 'accepted_email'],
    ])
  })

  test('are searched in a long list with several requests, some of which find nothing', async () => {
    const { path, json, database } = await createSimulatedList(['valid@a.example'])
    await database.db.updateTable('item').set({ position: 150_000 }).execute()
    const first = (await json(`${path}/results?search=valid`)) as unknown as { data: Page }
    expect(first.data).toMatchObject({ items: [], has_more: true })
    const cursor = first.data.next_cursor
    expect((await json(`${path}/results?search=valid&cursor=${cursor}`)).data).toMatchObject({
      items: [{ row: 150_000 }],
      next_cursor: null,
      has_more: false,
    })
  })

  test.each([
    [
      'class=good',
      /"class" in the query is "good"; it must be one or more of deliverable, risky, undeliverable, unknown/,
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
    const { path, request } = await createSimulatedList(MIXED)
    const response = await request(`${path}/results?${query}`)
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({
      code: 'invalid_request',
      error: expect.stringMatching(error),
    })
  })

  test('are shown to a key that may read jobs, and to no other', async () => {
    const { path, request, addKey } = await createSimulatedList(MIXED)
    const reader = await addKey({ scopes: ['jobs:read'] })
    const other = await addKey({ scopes: ['jobs:write', 'account:read'] })
    expect((await request(`${path}/results`, { key: reader })).status).toBe(200)
    expect((await request(`${path}/results`, { key: other })).status).toBe(403)
    expect((await request('/v1/jobs/job_none/results')).status).toBe(404)
  })
})

/** Returns the row numbers of all pages of a query, with the counts of each page. */
async function pagesOf({ json, path }: SimulatedList, query: string) {
  const pages: { rows: number[]; total: unknown; offset: unknown }[] = []
  for (let cursor = ''; ; ) {
    const { data } = (await json(`${path}/results?${query}${cursor}`)) as unknown as {
      data: Counted
    }
    pages.push({ rows: data.items.map(({ row }) => row), total: data.total, offset: data.offset })
    if (data.next_cursor === null) return pages
    cursor = `&cursor=${data.next_cursor}`
  }
}

type SimulatedList = Pick<Awaited<ReturnType<typeof createSimulatedList>>, 'json' | 'path'>
type Counted = Page & { readonly total?: number; readonly offset?: number }

describe('sorted rows', () => {
  // The reasons by name: Accepted, Internal error, Low deliverability, Mailbox not found, Role address, Timeout.
  test.each([
    ['sort=row&order=desc', [6, 5, 4, 3, 2, 1]],
    ['sort=email', [5, 3, 2, 6, 4, 1]],
    ['sort=email&order=desc', [1, 4, 6, 2, 3, 5]],
    ['sort=class', [1, 2, 6, 3, 4, 5]],
    ['sort=class&order=desc', [4, 5, 3, 2, 6, 1]],
    ['sort=reason', [1, 5, 2, 3, 6, 4]],
    ['sort=email&class=unknown,risky', [5, 2, 6, 4]],
    ['sort=class&search=I', [1, 2, 3, 4]],
    ['sort=email&search=nobody', []],
  ])('by %s', async (query, rows) => {
    const { path, json } = await createSimulatedList(MIXED)
    const one = await pagesOf({ json, path }, query)
    expect(one).toEqual([{ rows, total: rows.length, offset: 0 }])
    const pages = await pagesOf({ json, path }, `${query}&limit=2`)
    expect(pages.flatMap(page => page.rows)).toEqual(rows)
    expect(pages.map(({ total, offset }) => [total, offset])).toEqual(
      pages.map((_, n) => [rows.length, 2 * n]),
    )
  })

  test('without a value come last in both directions', async () => {
    const { path, json } = await createHalfwayList()
    for (const order of ['asc', 'desc']) {
      const [page] = await pagesOf({ json, path }, `sort=class&order=${order}`)
      expect(page?.rows.slice(2)).toEqual([3, 4, 5, 6])
    }
  })

  test('with equal values are each returned once, duplicates with the result of their first row', async () => {
    const texts = Array.from({ length: 1_100 }, (_, n) =>
      n % 2 ? 'valid@a.example' : `risky${n}@a.example`,
    )
    const { path, json } = await createSimulatedList(texts, { deduplicate: true })
    const pages = await pagesOf({ json, path }, 'sort=class&limit=400')
    const rows = pages.flatMap(page => page.rows)
    const even = Array.from({ length: 550 }, (_, n) => 2 * n + 2)
    expect(rows).toEqual([...even, ...even.map(row => row - 1)])
    expect(pages.map(({ offset }) => offset)).toEqual([0, 400, 800])
  })

  test('sort by the whole alphabet, and take a cursor of long addresses back', async () => {
    const long = '\u{1f600}'.repeat(120)
    const texts = [`${long}b`, `${long}a`, 'Zoe@a.example', 'ada@a.example']
    const { path, json } = await createSimulatedList(texts)
    const pages = await pagesOf({ json, path }, 'sort=email&limit=1')
    // Texts that are equal for a hundred characters keep the order of the list.
    expect(pages.map(({ rows }) => rows)).toEqual([[4], [3], [1], [2]])
  })

  test('are rejected with a cursor of another order, and with a row of the list to start after', async () => {
    const { path, request, json } = await createSimulatedList(MIXED)
    const { data } = (await json(`${path}/results?sort=email&limit=1`)) as unknown as { data: Page }
    for (const [query, message] of [
      [`sort=class&cursor=${data.next_cursor}`, 'with the same "sort", here "class"'],
      ['sort=class&cursor=x', 'with the same "sort"'],
      ['sort=email&after=3', '"after" is a row in the order of the list'],
      ['sort=name', 'sort'],
    ]) {
      const response = await request(`${path}/results?${query}`)
      expect([query, response.status]).toEqual([query, 400])
      expect(((await response.json()) as { error: string }).error).toContain(message)
    }
  })
})

describe('counted rows', () => {
  test('have the number of rows that match and that are before the page', async () => {
    const { path, json } = await createSimulatedList(MIXED)
    expect(await pagesOf({ json, path }, 'count=true&limit=4')).toEqual([
      { rows: [1, 2, 3, 4], total: 6, offset: 0 },
      { rows: [5, 6], total: 6, offset: 4 },
    ])
    expect(await pagesOf({ json, path }, 'count=true&after=5')).toEqual([
      { rows: [6], total: 6, offset: 5 },
    ])
    expect(await pagesOf({ json, path }, 'count=true&after=99')).toEqual([
      { rows: [], total: 6, offset: 6 },
    ])
    expect(await pagesOf({ json, path }, 'count=true&class=risky,unknown&limit=3')).toEqual([
      { rows: [2, 4, 5], total: 4, offset: 0 },
      { rows: [6], total: 4, offset: 3 },
    ])
    expect(await pagesOf({ json, path }, 'count=true&class=risky,unknown&after=2')).toEqual([
      { rows: [4, 5, 6], total: 4, offset: 1 },
    ])
    expect(await pagesOf({ json, path }, 'count=true&search=valid&after=1')).toEqual([
      { rows: [3], total: 2, offset: 1 },
    ])
    expect(await pagesOf({ json, path }, '')).toEqual([
      { rows: [1, 2, 3, 4, 5, 6], total: undefined, offset: undefined },
    ])
  })
})

test('counted pages of a long list are full, however rare the rows are', async () => {
  const { path, database, json } = await createSimulatedList(MIXED)
  const moved = database.db.updateTable('item').where('position', '>', 1)
  await moved.set(eb => ({ position: eb('position', '+', 200_000) })).execute()
  for (const query of [
    'class=deliverable,risky',
    'search=a.example',
    'reason=role_account,timeout',
  ]) {
    const pages = await pagesOf({ json, path }, `count=true&limit=2&${query}`)
    const sizes = pages.map(({ rows }) => rows.length)
    expect([query, sizes.slice(0, -1).every(size => size === 2)]).toEqual([query, true])
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(pages[0]?.total)
  }
})

describe('one row of a job', () => {
  test('has its flags and evidence; the reply of the mail server is sanitized', async () => {
    const { path, json } = await createHalfwayList()
    expect((await json(`${path}/results/1`)).data).toMatchObject({
      row: 1,
      email: 'valid@a.test',
      result: { reason: 'accepted_email', flags: { is_role: false }, evidence: { answer: {} } },
    })
    expect((await json(`${path}/results/3`)).data).toEqual({
      row: 3,
      email: 'user0@held.test',
      result: null,
    })
  })

  test('that was erased has no result', async () => {
    const { path, json, database } = await createSimulatedList(['valid@a.example'])
    await database.db.updateTable('item').set({ result: 'null', text: '' }).execute()
    expect((await json(`${path}/results/1`)).data).toEqual({
      row: 1,
      email: '',
      result: null,
      erased: true,
    })
  })

  test('is missing beyond the list, in another account, and with a wrong number', async () => {
    const { path, request, submit, addAccount, addKey } = await createSimulatedList(MIXED)
    await addAccount('acc_2')
    const other = await submit(MIXED, { key: await addKey({ accountId: 'acc_2' }) })
    for (const [one, status] of [
      [`${path}/results/7`, 404],
      [`/v1/jobs/${other}/results/1`, 404],
      [`/v1/jobs/${other}/results?sort=email`, 404],
      [`${path}/results/0`, 400],
      [`${path}/results/x`, 400],
    ] as const) {
      expect([one, (await request(one)).status]).toEqual([one, status])
    }
  })
})
