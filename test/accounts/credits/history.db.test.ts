import { describe, expect, test } from 'vitest'
import {
  addHistory,
  deleteHistoryBefore,
  deleteJobHistory,
  deleteSandboxHistoryBefore,
  hasVerification,
  type Verification,
} from '../../../src/accounts/credits/history.ts'
import { getHistoryPage, type HistoryQuery } from '../../../src/accounts/credits/history-page.ts'
import { addUsage, listUsage } from '../../../src/accounts/credits/usage.ts'
import { type Database, write } from '../../../src/db/database.ts'
import { newRow } from '../../../src/jobs/job-store.ts'
import { plansOf } from '../../db/plan/query-plans.ts'
import { addAccount, verificationRow } from '../../support/account-rows.ts'
import { onPostgres, tempDatabase } from '../../support/database.ts'

const ROW = verificationRow({
  id: 'ver_a',
  account_id: 'acc_a',
  key_id: 'key_a',
  email: 'Ann@good.test',
  created_at: 5,
})
const QUERY: HistoryQuery = { accountId: 'acc_a', sandbox: false, before: null, max: 10 }

async function withRows(...rows: Partial<Verification>[]): Promise<Database> {
  const database = await tempDatabase()
  const whole = rows.map((row, n) => ({ ...ROW, id: `ver_${n}`, ...row }))
  await write(database, trx => addHistory(trx, whole))
  return database
}

const idsOf = async (database: Database, query: Partial<HistoryQuery> = {}) =>
  (await getHistoryPage(database, { ...QUERY, ...query })).rows.map(({ id }) => id)

describe('the history', () => {
  test('returns what was written, with any characters', async () => {
    const rows = [
      { ...ROW, job_id: 'job_a', email: '"a\\"\u0000\n’ü"@good.test' },
      { ...ROW, id: 'ver_b', created_at: 4, email: '12345', cached: 1 },
    ]
    expect((await getHistoryPage(await withRows(...rows), QUERY)).rows).toEqual(rows)
  })

  test('pages from newest to oldest without missing rows of the same time', async () => {
    const times = [3, 1, 2, 2, 2, 4]
    const database = await withRows(...times.map(created_at => ({ created_at })))
    const seen: string[] = []
    let before: HistoryQuery['before'] = null
    do {
      const page = await getHistoryPage(database, { ...QUERY, before, max: 2 })
      seen.push(...page.rows.map(({ id }) => id))
      before = page.next
    } while (before !== null)
    expect(seen).toEqual(['ver_5', 'ver_0', 'ver_4', 'ver_3', 'ver_2', 'ver_1'])
  })

  test.each<[string, Partial<Verification>, Partial<HistoryQuery>]>([
    ['of another account', { account_id: 'acc_b' }, {}],
    ['of the sandbox', { sandbox: 1 }, {}],
    ['outside the sandbox in a sandbox query', {}, { sandbox: true }],
    ['of another address', {}, { email: 'ben@good.test' }],
    ['of another reason', {}, { reason: 'timeout' }],
    ['of another class', {}, { classes: ['risky'] }],
    ['of an address that does not match the search', {}, { search: 'BEN@good' }],
    ['from another source', {}, { source: 'batch' }],
  ])('excludes %s', async (_, row, query) => {
    const wanted = {
      sandbox: Number(query.sandbox ?? false),
      reason: query.reason ?? ROW.reason,
      email: query.email ?? (query.search === undefined ? ROW.email : 'ben@good.test'),
      source: query.source ?? ROW.source,
      class: query.classes?.[0] ?? ROW.class,
    }
    expect(await idsOf(await withRows(row, wanted), query)).toEqual(['ver_1'])
  })

  test('finds an address case-insensitively', async () => {
    expect(await idsOf(await withRows({}), { email: 'aNN@GOOD.test' })).toEqual(['ver_0'])
  })

  test('finds part of an address case-insensitively, and letters beyond ASCII', async () => {
    const emails = ['Ann@good.test', 'JÜRGEN@good.test', 'jürgen@other.test', 'a%b_c@good.test']
    const database = await withRows(...emails.map(email => ({ email })))
    const found = async (search: string) =>
      (await getHistoryPage(database, { ...QUERY, search })).rows
        .map(({ email }) => email)
        .toSorted()
    expect(await found('NN@g')).toEqual(['Ann@good.test'])
    expect(await found('jÜr')).toEqual(['JÜRGEN@good.test', 'jürgen@other.test'])
    expect(await found('RGEN@good')).toEqual(['JÜRGEN@good.test'])
    expect(await found('é')).toEqual([])
    // Neither is a wildcard.
    expect(await found('%b_')).toEqual(['a%b_c@good.test'])
    expect(await found('a%c')).toEqual([])
    expect(await idsOf(database, { email: 'Jürgen@GOOD.test' })).toEqual(['ver_1'])
  })

  describe('is searched in chunks', () => {
    /** Every seventh row matches; three rows share each time. */
    const many = (count: number) =>
      withRows(
        ...Array.from({ length: count }, (_, n) => ({
          id: `ver_${String(n).padStart(6, '0')}`,
          created_at: Math.floor(n / 3),
          email: n % 7 === 0 ? `sought${n}@good.test` : `other${n}@good.test`,
        })),
      )

    /** All pages in order; each continues where the one before ended. */
    async function pagesOf(database: Database, query: Partial<HistoryQuery>) {
      const pages: string[][] = []
      let before: HistoryQuery['before'] = null
      do {
        const page = await getHistoryPage(database, { ...QUERY, ...query, before })
        pages.push(page.rows.map(({ id }) => id))
        before = page.next
      } while (before !== null && pages.length < 1_000)
      return pages
    }

    test.each([
      [2_500, 1, undefined],
      [2_500, 50, undefined],
      [2_500, 50, 999],
      [2_500, 200, 2_500],
      [2_000, 50, 1],
      [1_001, 143, 1_000],
    ])(
      'with %i rows, %i per page, %s scanned finds each match once',
      async (count, max, scannedMax) => {
        const database = await many(count)
        const bounds = scannedMax === undefined ? {} : { scannedMax: Math.max(scannedMax, 5) }
        const pages = await pagesOf(database, { search: 'sought', max, ...bounds })
        const all = Array.from({ length: Math.ceil(count / 7) }, (_, n) => n * 7).reverse()
        expect(pages.flat()).toEqual(all.map(n => `ver_${String(n).padStart(6, '0')}`))
        expect(Math.max(...pages.map(({ length }) => length))).toBeLessThanOrEqual(max)
      },
    )

    test('and stops after the scan limit even without a match', async () => {
      const database = await many(100)
      const o = { ...QUERY, search: 'nobody', scannedMax: 30 }
      const first = await getHistoryPage(database, o)
      expect(first).toEqual({ rows: [], next: { createdAt: 23, id: 'ver_000070' } })
      expect(await pagesOf(database, { search: 'nobody', scannedMax: 30 })).toEqual([
        ...[[], [], [], []],
      ])
    })

    test('within a time range that no page leaves', async () => {
      const database = await many(3_000)
      const query = { search: 'sought', max: 10, since: 100, until: 900, scannedMax: 700 }
      const found = (await pagesOf(database, query)).flat()
      const expected = Array.from({ length: 3_000 }, (_, n) => n)
        .filter(n => n % 7 === 0 && Math.floor(n / 3) >= 100 && Math.floor(n / 3) < 900)
        .reverse()
      expect(found).toEqual(expected.map(n => `ver_${String(n).padStart(6, '0')}`))
    })

    test('continues after the last row of a full page', async () => {
      const database = await many(50)
      const { rows, next } = await getHistoryPage(database, { ...QUERY, search: 'sought', max: 3 })
      expect(rows.map(({ id }) => id)).toEqual(['ver_000049', 'ver_000042', 'ver_000035'])
      expect(next).toEqual({ createdAt: 11, id: 'ver_000035' })
    })

    test('with non-ASCII rows that do not match, and misses none that do', async () => {
      const database = await withRows(
        ...Array.from({ length: 30 }, (_, n) => ({
          id: `ver_${n + 10}`,
          email: n % 9 === 0 ? 'É@good.test' : 'ü@good.test',
        })),
      )
      expect(await pagesOf(database, { search: 'é', max: 2 })).toEqual([
        ...[
          ['ver_37', 'ver_28'],
          ['ver_19', 'ver_10'],
        ],
      ])
    })

    test.skipIf(onPostgres)(
      'by its primary key: no sort, and no reads outside of a chunk',
      async () => {
        const database = await many(10)
        const before = { createdAt: 3, id: 'ver_000009' }
        const plan = await plansOf(database, db =>
          getHistoryPage(db, { ...QUERY, before, search: 'sought', classes: ['risky'], since: 1 }),
        )
        expect(plan).toHaveLength(2)
        for (const line of plan) {
          expect(line).toMatch(
            /SEARCH verification USING PRIMARY KEY .*account_id=\? AND sandbox=\?/,
          )
          expect(line).toMatch(/<\(\?,\?\)/)
        }
      },
    )
  })

  test('is unchanged when it is written again', async () => {
    const database = await withRows({})
    await write(database, trx => addHistory(trx, [{ ...ROW, id: 'ver_0', reason: 'timeout' }]))
    expect((await getHistoryPage(database, QUERY)).rows).toEqual([{ ...ROW, id: 'ver_0' }])
    await write(database, async trx => {
      const of = { accountId: 'acc_a', sandbox: false, createdAt: 5 }
      expect(await hasVerification(trx, { ...of, id: 'ver_0' })).toBe(true)
      expect(await hasVerification(trx, { ...of, id: 'ver_1' })).toBe(false)
    })
  })

  test('deletes at most the given number of rows older than a time', async () => {
    const database = await withRows({ created_at: 1 }, { created_at: 2 }, { created_at: 3 })
    await write(database, async trx => {
      expect(await deleteHistoryBefore(trx, 3, 1)).toBe(1)
      expect(await deleteHistoryBefore(trx, 3)).toBe(1)
      expect(await deleteHistoryBefore(trx, 3)).toBe(0)
    })
    expect(await idsOf(database)).toEqual(['ver_2'])
  })

  test('deletes sandbox rows older than a time of each account, and no live ones', async () => {
    const database = await withRows(
      ...[{ created_at: 1 }, { created_at: 1, sandbox: 1 }, { created_at: 2, sandbox: 1 }],
      ...[
        { created_at: 3, sandbox: 1 },
        { created_at: 1, sandbox: 1, account_id: 'acc_b' },
      ],
    )
    await addAccount(database, 'acc_a')
    await addAccount(database, 'acc_b')
    await write(database, async trx => {
      expect(await deleteSandboxHistoryBefore(trx, 3, 2)).toBe(2)
      expect(await deleteSandboxHistoryBefore(trx, 3, 2)).toBe(1)
    })
    const left = database.db.selectFrom('verification').select('id').orderBy('id')
    expect((await left.execute()).map(({ id }) => id)).toEqual(['ver_0', 'ver_3'])
  })
})

test('sums usage by account, key, day and class, and lists it by day', async () => {
  const database = await tempDatabase()
  const row = { account_id: 'acc_a', key_id: 'key_a', day: 10, class: 'risky' }
  const counts = { verifications: 2, cached: 1, credits: 1 }
  await write(database, trx =>
    addUsage(trx, [
      { ...row, ...counts },
      { ...row, ...counts },
      { ...row, ...counts, day: 20 },
      { ...row, ...counts, day: 9, class: 'unknown' },
      { ...row, ...counts, key_id: 'key_b' },
      { ...row, ...counts, account_id: 'acc_b' },
    ]),
  )
  expect(await listUsage(database, { accountId: 'acc_a', from: 10, to: 20 })).toEqual([
    { ...row, verifications: 4, cached: 2, credits: 2 },
    { ...row, ...counts, key_id: 'key_b' },
  ])
})

describe('the history of a job', () => {
  const JOB = {
    ...newRow({ id: 'job_a', sourceKey: 'job_a', source: '{}' }, 100_000),
    account_id: 'acc_a',
    finished_at: 200_000,
  }

  test('is deleted among any number of others, for this account and sandbox flag only', async () => {
    const rows = Array.from({ length: 5_000 }, (_, n) => ({
      id: `ver_${n}`,
      job_id: n % 2 === 0 ? 'job_a' : 'job_b',
      created_at: 100_000 + n * 20,
    }))
    const others = [
      { id: 'ver_x', job_id: 'job_a', account_id: 'acc_b', created_at: 100_000 },
      { id: 'ver_y', job_id: 'job_a', sandbox: 1, created_at: 100_000 },
    ]
    const database = await withRows(...rows, ...others)
    await deleteJobHistory(database, JOB)
    const left = await database.db.selectFrom('verification').select(['id', 'job_id']).execute()
    expect(
      left
        .filter(({ job_id }) => job_id === 'job_a')
        .map(({ id }) => id)
        .toSorted(),
    ).toEqual(['ver_x', 'ver_y'])
    expect(left).toHaveLength(2_502)
  })

  test('of a single verification without a waiting client is the row with its ID', async () => {
    const database = await withRows(
      { id: 'ver_a', created_at: 150_000 },
      { id: 'ver_b', created_at: 150_000 },
    )
    await deleteJobHistory(database, { ...JOB, id: 'ver_a' })
    expect(await idsOf(database)).toEqual(['ver_b'])
  })
})
