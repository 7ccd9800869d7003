import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  holdCredits,
  readCredit,
  releaseHold,
  releaseLostHolds,
  settleCredits,
} from '../../../src/store/account/credits.ts'
import { type Database, write } from '../../../src/store/database.ts'
import { addJob, tempDatabase } from '../temp-database.ts'

const OF = { accountId: 'acc_a', period: 86_400_000 }

const hold = (database: Database, amount: number, limit: number | null, of = OF) =>
  write(database, trx => holdCredits(trx, { ...of, amount, limit }))
const settle = (database: Database, released: number, used: number, of = OF) =>
  write(database, trx => settleCredits(trx, { ...of, released, used }))
const read = (database: Database, of = OF) => readCredit(database, of.accountId, of.period)

describe('credits', () => {
  test('are zero where nothing was used', async () => {
    const database = await tempDatabase()
    expect(await read(database)).toEqual({
      ...{ account_id: 'acc_a', period_start: OF.period, used: 0, held: 0, warned: 0 },
    })
  })

  test('are held up to the limit, used ones with them, and not one more', async () => {
    const database = await tempDatabase()
    expect(await hold(database, 4, 10)).toBe(true)
    await settle(database, 4, 3)
    expect(await hold(database, 8, 10)).toBe(false)
    expect(await hold(database, 7, 10)).toBe(true)
    expect(await hold(database, 1, 10)).toBe(false)
    expect(await read(database)).toMatchObject({ used: 3, held: 7 })
  })

  test('are not held at all when the first that wants some wants too many', async () => {
    const database = await tempDatabase()
    expect(await hold(database, 11, 10)).toBe(false)
    expect(await read(database)).toMatchObject({ used: 0, held: 0 })
  })

  test('without a limit are held all the same', async () => {
    const database = await tempDatabase()
    expect(await hold(database, 1_000_000, null)).toBe(true)
    expect(await hold(database, 1_000_000, null)).toBe(true)
    expect(await read(database)).toMatchObject({ held: 2_000_000 })
  })

  test('of one account or day are no concern of another', async () => {
    const database = await tempDatabase()
    for (const of of [OF, { ...OF, accountId: 'acc_b' }, { ...OF, period: 2 * OF.period }]) {
      expect(await hold(database, 10, 10, of)).toBe(true)
    }
  })

  test('of which one is left go to one of a hundred who want it at once', async () => {
    const database = await tempDatabase()
    await settle(database, 0, 99)
    const wanted = Array.from({ length: 100 }, () => hold(database, 1, 100))
    expect((await Promise.all(wanted)).filter(held => held)).toHaveLength(1)
    expect(await read(database)).toMatchObject({ used: 99, held: 1 })
  })

  test('that were counted as lost are not given back twice', async () => {
    const database = await tempDatabase()
    await hold(database, 1, 10)
    await write(database, releaseLostHolds)
    expect(await settle(database, 1, 1)).toMatchObject({ used: 1, held: 0 })
  })
})

/** A job that holds credits. */
async function holdingJob(database: Database, id: string, amount: number) {
  await addJob(database, ['a@x.test'], id)
  await hold(database, amount, null)
  const held = { account_id: OF.accountId, credit_period: OF.period, held: amount }
  await database.db.updateTable('job').set(held).where('id', '=', id).execute()
}

describe('what a job holds', () => {
  test('goes back once', async () => {
    const database = await tempDatabase()
    await holdingJob(database, 'job_a', 5)
    await hold(database, 1, null)
    for (let n = 0; n < 2; n++) await write(database, trx => releaseHold(trx, { id: 'job_a' }))
    expect(await read(database)).toMatchObject({ used: 0, held: 1 })
  })

  test('stays held at a start while it is open, and all else goes back', async () => {
    const database = await tempDatabase()
    await holdingJob(database, 'job_a', 5)
    await holdingJob(database, 'job_b', 3)
    await hold(database, 2, null)
    await hold(database, 2, null, { ...OF, period: 0 })
    await database.db
      .updateTable('job')
      .set({ state: 'completed', finished_at: 1 })
      .where('id', '=', 'job_b')
      .execute()
    await write(database, releaseLostHolds)
    expect(await read(database)).toMatchObject({ held: 5 })
    expect(await read(database, { ...OF, period: 0 })).toMatchObject({ held: 0 })
  })
})

test('whatever happens in whatever order, no more is used and held than there is, and what is used is what was charged', async () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('hold' as const), amount: fc.integer({ min: 1, max: 6 }) }),
    fc.record({
      kind: fc.constant('settle' as const),
      share: fc.double({ min: 0, max: 1, noNaN: true }),
    }),
    fc.record({ kind: fc.constant('giveBack' as const) }),
    fc.record({ kind: fc.constant('crash' as const) }),
  )
  const property = fc.asyncProperty(
    fc.array(step, { maxLength: 40 }),
    fc.integer({ min: 1, max: 15 }),
    async (steps, limit) => {
      const database = await tempDatabase()
      let open: number[] = []
      let charged = 0
      for (const one of steps) {
        if (one.kind === 'hold') {
          const fits = charged + sum(open) + one.amount <= limit
          expect(await hold(database, one.amount, limit)).toBe(fits)
          if (fits) open.push(one.amount)
        } else if (one.kind === 'crash') {
          await write(database, releaseLostHolds)
          open = []
        } else {
          const amount = open.shift() ?? 0
          const used = one.kind === 'settle' ? Math.floor(amount * one.share) : 0
          charged += used
          await settle(database, amount, used)
        }
        const credit = await read(database)
        expect(credit).toMatchObject({ used: charged, held: sum(open) })
        expect(credit.used + credit.held).toBeLessThanOrEqual(limit)
      }
      await database.close()
    },
  )
  await fc.assert(property, { numRuns: 40 })
})

const sum = (numbers: readonly number[]) => numbers.reduce((total, one) => total + one, 0)
