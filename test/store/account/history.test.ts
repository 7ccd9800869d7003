import { describe, expect, test } from 'vitest'
import {
  addHistory,
  deleteHistoryBefore,
  deleteHistoryOf,
  type HistoryQuery,
  hasVerification,
  historyPage,
  type Verification,
} from '../../../src/store/account/history.ts'
import { countUsage, usageOf } from '../../../src/store/account/usage.ts'
import { type Database, write } from '../../../src/store/database.ts'
import { newRow } from '../../../src/store/job/jobs.ts'
import { tempDatabase } from '../temp-database.ts'

const ROW: Verification = {
  ...{ id: 'ver_a', account_id: 'acc_a', key_id: 'key_a', email: 'Ann@good.test' },
  ...{ valid: 1, deliverable: 1, risk_level: 'low', reason: 'accepted_email' },
  ...{ class: 'deliverable', cached: 0, source: 'single', job_id: null, sandbox: 0, created_at: 5 },
}
const QUERY: HistoryQuery = { accountId: 'acc_a', sandbox: false, before: null, max: 10 }

async function withRows(...rows: Partial<Verification>[]): Promise<Database> {
  const database = await tempDatabase()
  const whole = rows.map((row, n) => ({ ...ROW, id: `ver_${n}`, ...row }))
  await write(database, trx => addHistory(trx, whole))
  return database
}

const idsOf = async (database: Database, query: Partial<HistoryQuery> = {}) =>
  (await historyPage(database, { ...QUERY, ...query })).map(({ id }) => id)

describe('the history', () => {
  test('gives back what was written, whatever stands in it', async () => {
    const rows = [
      { ...ROW, job_id: 'job_a', email: '"a\\"\u0000\n’ü"@good.test' },
      { ...ROW, id: 'ver_b', created_at: 4, email: '12345', cached: 1 },
    ]
    expect(await historyPage(await withRows(...rows), QUERY)).toEqual(rows)
  })

  test('goes from the newest to the oldest, page by page, and misses none of the same moment', async () => {
    const times = [3, 1, 2, 2, 2, 4]
    const database = await withRows(...times.map(created_at => ({ created_at })))
    const seen: string[] = []
    for (let before: HistoryQuery['before'] = null; ; ) {
      const page = await historyPage(database, { ...QUERY, before, max: 2 })
      seen.push(...page.map(({ id }) => id))
      const last = page.at(-1)
      if (last === undefined) break
      before = { createdAt: last.created_at, id: last.id }
    }
    expect(seen).toEqual(['ver_5', 'ver_0', 'ver_4', 'ver_3', 'ver_2', 'ver_1'])
  })

  test.each<[string, Partial<Verification>, Partial<HistoryQuery>]>([
    ['of another account', { account_id: 'acc_b' }, {}],
    ['that was simulated', { sandbox: 1 }, {}],
    ['that was real, for who looks at simulated ones', {}, { sandbox: true }],
    ['of another address', {}, { email: 'ben@good.test' }],
    ['of another reason', {}, { reason: 'timeout' }],
    ['from elsewhere', {}, { source: 'batch' }],
  ])('leaves out what is %s', async (_, row, query) => {
    const wanted = {
      ...{ sandbox: Number(query.sandbox ?? false), reason: query.reason ?? ROW.reason },
      ...{ email: query.email ?? ROW.email, source: query.source ?? ROW.source },
    }
    expect(await idsOf(await withRows(row, wanted), query)).toEqual(['ver_1'])
  })

  test('finds an address in any case of its letters', async () => {
    expect(await idsOf(await withRows({}), { email: 'aNN@GOOD.test' })).toEqual(['ver_0'])
  })

  test('written again stays as it was', async () => {
    const database = await withRows({})
    await write(database, trx => addHistory(trx, [{ ...ROW, id: 'ver_0', reason: 'timeout' }]))
    expect(await historyPage(database, QUERY)).toEqual([{ ...ROW, id: 'ver_0' }])
    await write(database, async trx => {
      const of = { accountId: 'acc_a', sandbox: false, createdAt: 5 }
      expect(await hasVerification(trx, { ...of, id: 'ver_0' })).toBe(true)
      expect(await hasVerification(trx, { ...of, id: 'ver_1' })).toBe(false)
    })
  })

  test('loses what is older than a time, so much at once as is said', async () => {
    const database = await withRows({ created_at: 1 }, { created_at: 2 }, { created_at: 3 })
    await write(database, async trx => {
      expect(await deleteHistoryBefore(trx, 3, 1)).toBe(1)
      expect(await deleteHistoryBefore(trx, 3)).toBe(1)
      expect(await deleteHistoryBefore(trx, 3)).toBe(0)
    })
    expect(await idsOf(database)).toEqual(['ver_2'])
  })
})

test('what was used adds up by account, key, day and class, and is told by day', async () => {
  const database = await tempDatabase()
  const row = { account_id: 'acc_a', key_id: 'key_a', day: 10, class: 'risky' }
  const counts = { verifications: 2, cached: 1, credits: 1 }
  await write(database, trx =>
    countUsage(trx, [
      { ...row, ...counts },
      { ...row, ...counts },
      { ...row, ...counts, day: 20 },
      { ...row, ...counts, day: 9, class: 'unknown' },
      { ...row, ...counts, key_id: 'key_b' },
      { ...row, ...counts, account_id: 'acc_b' },
    ]),
  )
  expect(await usageOf(database, { accountId: 'acc_a', from: 10, to: 20 })).toEqual([
    { ...row, verifications: 4, cached: 2, credits: 2 },
    { ...row, ...counts, key_id: 'key_b' },
  ])
})

describe('what there is of a job', () => {
  const JOB = {
    ...newRow({ id: 'job_a', sourceKey: 'job_a', source: '{}' }, 100_000),
    ...{ account_id: 'acc_a', finished_at: 200_000 },
  }

  test('goes, however many others there are between, of this account and this side of the sandbox', async () => {
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
    await deleteHistoryOf(database, JOB)
    const left = await database.db.selectFrom('verification').select(['id', 'job_id']).execute()
    expect(
      left
        .filter(({ job_id }) => job_id === 'job_a')
        .map(({ id }) => id)
        .toSorted(),
    ).toEqual(['ver_x', 'ver_y'])
    expect(left).toHaveLength(2_502)
  })

  test('of a single verification that nobody waited for is the row that has its ID', async () => {
    const database = await withRows(
      { id: 'ver_a', created_at: 150_000 },
      { id: 'ver_b', created_at: 150_000 },
    )
    await deleteHistoryOf(database, { ...JOB, id: 'ver_a', type: 'single' })
    expect(await idsOf(database)).toEqual(['ver_b'])
  })
})
