import { describe, expect, test } from 'vitest'
import {
  consumeReservation,
  lockAccounts,
  readCredit,
  releaseReservations,
  reserveCredits,
  settleCredits,
} from '../../../src/accounts/credits/credit-store.ts'
import { register } from '../../../src/cluster/members.ts'
import {
  type Database,
  write,
  writeAsyncCommit,
  writeConcurrent,
} from '../../../src/db/database.ts'
import { releaseOrphanedReservations, releaseReservation } from '../../../src/jobs/job-credits.ts'
import { addAccount } from '../../support/account-rows.ts'
import { addJob, onPostgres, tempDatabase } from '../../support/database.ts'
import { fc, runs } from '../../support/property.ts'
import { twoServers } from '../../support/two-servers.ts'

const OF = { accountId: 'acc_a', period: 86_400_000 }

const reserve = (database: Database, amount: number, limit: number | null, of = OF) =>
  write(database, trx => reserveCredits(trx, { ...of, amount, limit }))
const settle = (database: Database, released: number, used: number, of = OF) =>
  write(database, trx => settleCredits(trx, { ...of, released, used }))
const read = (database: Database, of = OF) => readCredit(database, of.accountId, of.period)

describe('credits', () => {
  test('are zero before the first use', async () => {
    const database = await tempDatabase()
    expect(await read(database)).toEqual({
      account_id: 'acc_a',
      period_start: OF.period,
      used: 0,
      held: 0,
      warned: 0,
    })
  })

  test('can be reserved up to the limit, including used ones, and not one more', async () => {
    const database = await tempDatabase()
    expect(await reserve(database, 4, 10)).toBe(true)
    await settle(database, 4, 3)
    expect(await reserve(database, 8, 10)).toBe(false)
    expect(await reserve(database, 7, 10)).toBe(true)
    expect(await reserve(database, 1, 10)).toBe(false)
    expect(await read(database)).toMatchObject({ used: 3, held: 7 })
  })

  test('are not reserved at all if the first request is too large', async () => {
    const database = await tempDatabase()
    expect(await reserve(database, 11, 10)).toBe(false)
    expect(await read(database)).toMatchObject({ used: 0, held: 0 })
  })

  test('are reserved without a limit too', async () => {
    const database = await tempDatabase()
    expect(await reserve(database, 1_000_000, null)).toBe(true)
    expect(await reserve(database, 1_000_000, null)).toBe(true)
    expect(await read(database)).toMatchObject({ held: 2_000_000 })
  })

  test('of one account or day do not affect another', async () => {
    const database = await tempDatabase()
    for (const of of [OF, { ...OF, accountId: 'acc_b' }, { ...OF, period: 2 * OF.period }]) {
      expect(await reserve(database, 10, 10, of)).toBe(true)
    }
  })

  test('of which one is left go to one of a hundred concurrent requests', async () => {
    const database = await tempDatabase()
    await settle(database, 0, 99)
    const wanted = Array.from({ length: 100 }, () => reserve(database, 1, 100))
    expect((await Promise.all(wanted)).filter(held => held)).toHaveLength(1)
    expect(await read(database)).toMatchObject({ used: 99, held: 1 })
  })

  test('that were released after a crash are not released twice', async () => {
    const database = await tempDatabase()
    await reserve(database, 1, 10)
    await write(database, releaseOrphanedReservations)
    expect(await settle(database, 1, 1)).toMatchObject({ used: 1, held: 0 })
  })
})

/** Adds a job with reserved credits. */
async function holdingJob(database: Database, id: string, amount: number) {
  await addJob(database, ['a@x.test'], id)
  await reserve(database, amount, null)
  const held = { account_id: OF.accountId, credit_period: OF.period, held: amount }
  await database.db.updateTable('job').set(held).where('id', '=', id).execute()
}

describe('the reservation of a job', () => {
  test('is released once', async () => {
    const database = await tempDatabase()
    await holdingJob(database, 'job_a', 5)
    await reserve(database, 1, null)
    for (let n = 0; n < 2; n++)
      await write(database, trx => releaseReservation(trx, { id: 'job_a' }))
    expect(await read(database)).toMatchObject({ used: 0, held: 1 })
  })

  test('survives a restart while the job is open, and all others are released', async () => {
    const database = await tempDatabase()
    await holdingJob(database, 'job_a', 5)
    await holdingJob(database, 'job_b', 3)
    await reserve(database, 2, null)
    await reserve(database, 2, null, { ...OF, period: 0 })
    await database.db
      .updateTable('job')
      .set({ state: 'completed', finished_at: 1 })
      .where('id', '=', 'job_b')
      .execute()
    await write(database, releaseOrphanedReservations)
    expect(await read(database)).toMatchObject({ held: 5 })
    expect(await read(database, { ...OF, period: 0 })).toMatchObject({ held: 0 })
  })
})

test('used and reserved credits never exceed the limit in any sequence, and used ones match the charges', async () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('hold' as const), amount: fc.integer({ min: 1, max: 6 }) }),
    fc.record({
      kind: fc.constant('settle' as const),
      share: fc.double({ min: 0, max: 1, noNaN: true }),
    }),
    fc.record({ kind: fc.constant('giveBack' as const) }),
    fc.record({ kind: fc.constant('crash' as const) }),
  )
  const database = await tempDatabase()
  let period = OF.period
  const property = fc.asyncProperty(
    fc.array(step, { maxLength: 40 }),
    fc.integer({ min: 1, max: 15 }),
    async (steps, limit) => {
      // Each run has a credit period of its own.
      period += OF.period
      const of = { ...OF, period }
      let open: number[] = []
      let charged = 0
      for (const one of steps) {
        if (one.kind === 'hold') {
          const fits = charged + sum(open) + one.amount <= limit
          expect(await reserve(database, one.amount, limit, of)).toBe(fits)
          if (fits) open.push(one.amount)
        } else if (one.kind === 'crash') {
          await write(database, releaseOrphanedReservations)
          open = []
        } else {
          const amount = open.shift() ?? 0
          const used = one.kind === 'settle' ? Math.floor(amount * one.share) : 0
          charged += used
          await settle(database, amount, used, of)
        }
        const credit = await read(database, of)
        expect(credit).toMatchObject({ used: charged, held: sum(open) })
        expect(credit.used + credit.held).toBeLessThanOrEqual(limit)
      }
    },
  )
  await fc.assert(property, { numRuns: runs(40) })
})

const sum = (numbers: readonly number[]) => numbers.reduce((total, one) => total + one, 0)

describe.runIf(onPostgres)('credits on several servers', () => {
  const holdFor = (
    database: Database,
    member: string | null,
    amount: number,
    limit: number | null,
  ) => writeAsyncCommit(database, db => reserveCredits(db, { ...OF, amount, limit, member }))

  const holdsOf = async ({ db }: Database) =>
    (await db.selectFrom('hold').selectAll().orderBy('member_id').execute()).map(
      ({ member_id, amount }) => [member_id, amount],
    )

  const join = (database: Database, id: string) =>
    register(database, { id, role: 'serve', name: id, version: '1', egresses: [] })

  const take = (database: Database, member: string | null, amount: number) =>
    write(database, trx => consumeReservation(trx, { ...OF, member, amount }))

  test('of which forty are left go to forty of sixty-four concurrent requests on two servers', async () => {
    const { a, b } = await twoServers()
    await settle(a, 0, 60)
    const wanted = Array.from({ length: 64 }, (_, n) =>
      n % 2 === 0 ? holdFor(a, 'mem_a', 1, 100) : holdFor(b, 'mem_b', 1, 100),
    )
    expect((await Promise.all(wanted)).filter(held => held)).toHaveLength(40)
    expect(await read(a)).toMatchObject({ used: 60, held: 40 })
    expect((await holdsOf(a)).reduce((total, [, amount]) => total + Number(amount), 0)).toBe(40)
  })

  test('can be reserved up to the limit for an unused account under concurrency', async () => {
    const { a, b } = await twoServers()
    const wanted = Array.from({ length: 64 }, (_, n) => holdFor(n % 2 === 0 ? a : b, null, 3, 100))
    expect((await Promise.all(wanted)).filter(held => held)).toHaveLength(33)
    expect(await read(a)).toMatchObject({ used: 0, held: 99 })
  })

  test('that could not be reserved leave no row', async () => {
    const { a } = await twoServers()
    expect(await holdFor(a, 'mem_a', 11, 10)).toBe(false)
    expect(await holdsOf(a)).toEqual([])
  })

  test('are released once: those released with their member are not released again', async () => {
    const { a } = await twoServers()
    await holdFor(a, 'mem_a', 3, 10)
    await holdFor(a, 'mem_b', 4, 10)
    expect(await take(a, 'mem_a', 1)).toBe(1)
    expect(await holdsOf(a)).toEqual([
      ['mem_a', 2],
      ['mem_b', 4],
    ])
    await settle(a, 1, 0)
    await write(a, trx => releaseReservations(trx, ['mem_a']))
    expect(await read(a)).toMatchObject({ held: 4 })
    expect(await take(a, 'mem_a', 2)).toBe(0)
    expect(await take(a, 'mem_b', 9)).toBe(4)
    expect(await take(a, null, 5)).toBe(5)
    expect(await holdsOf(a)).toEqual([])
  })

  test('of members and open jobs stay reserved when another server starts, and all others are released', async () => {
    const { a, b } = await twoServers()
    await holdingJob(a, 'job_a', 5)
    await join(a, 'mem_a')
    await holdFor(a, 'mem_a', 2, 100)
    await holdFor(a, 'mem_gone', 3, 100)
    await holdFor(a, null, 4, 100)
    expect(await read(a)).toMatchObject({ held: 14 })
    await write(b, releaseOrphanedReservations)
    expect(await read(a)).toMatchObject({ held: 7 })
    expect(await holdsOf(a)).toEqual([['mem_a', 2]])
  })

  test('reserved while another server starts are kept', async () => {
    const { a, b } = await twoServers()
    await join(a, 'mem_a')
    await reserve(a, 5, null)
    const held = Array.from({ length: 60 }, () => holdFor(a, 'mem_a', 1, null))
    const starts = Array.from({ length: 5 }, () => write(b, releaseOrphanedReservations))
    await Promise.all([...held, ...starts])
    expect(await holdsOf(a)).toEqual([['mem_a', 60]])
    expect(await read(a)).toMatchObject({ held: 60 })
  })

  test('settled on two servers concurrently in any order all count', async () => {
    const { a, b } = await twoServers()
    for (const id of ['acc_a', 'acc_b', 'acc_c']) await addAccount(a, id)
    const ids = ['acc_a', 'acc_b', 'acc_c']
    const run = (database: Database, order: readonly string[]) =>
      writeConcurrent(database, async trx => {
        await lockAccounts(trx, order)
        for (const accountId of order) {
          await settleCredits(trx, { ...OF, accountId, released: 0, used: 1 })
        }
      })
    await Promise.all(
      Array.from({ length: 40 }, (_, n) =>
        run(n % 2 === 0 ? a : b, n % 3 === 0 ? ids : ids.toReversed()),
      ),
    )
    for (const accountId of ids)
      expect(await read(a, { ...OF, accountId })).toMatchObject({ used: 40 })
  })
})
