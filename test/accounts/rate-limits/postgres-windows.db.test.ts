import { describe, expect, onTestFinished, test } from 'vitest'
import { createPostgresLimits } from '../../../src/accounts/rate-limits/postgres-windows.ts'
import type { Bucket } from '../../../src/accounts/rate-limits/windows.ts'
import { openDatabase } from '../../../src/db/database.ts'
import { DAY, MINUTE, SECOND, systemClock } from '../../../src/platform/clock.ts'
import { silentLog } from '../../../src/platform/log.ts'
import { onPostgres } from '../../support/database.ts'
import { tempPostgres } from '../../support/postgres-pool.ts'
import { ask } from '../../support/postgres-server.ts'

const MINUTELY = { key: 'a', limit: 3, perMs: MINUTE }

/** Opens the given number of servers on one database. */
async function servers(amount: number) {
  const url = await tempPostgres()
  const open = async () => {
    const database = await openDatabase(url, systemClock)
    const limits = createPostgresLimits(database, { clock: systemClock, log: silentLog })
    onTestFinished(async () => {
      await limits.close()
      await database.close()
    })
    return limits
  }
  const all = await Promise.all(Array.from({ length: amount }, open))
  const take = async (n: number, ...buckets: Bucket[]) => {
    return (await (all[n % amount] as (typeof all)[number]).charge(buckets)).refusedBy
  }
  const [one, other] = all as [(typeof all)[number], (typeof all)[number]]
  /** The windows in the database with their remaining time. */
  const rows = () =>
    ask<{ key: string; used: number; left: number }>(
      url,
      `select key, used::int, (ends_at - extract(epoch from clock_timestamp()) * 1000)::int as left
       from bucket order by key`,
    )
  /** Shifts the ends of all windows. */
  const shift = (ms: number) => ask(url, `update bucket set ends_at = ends_at + ${ms}`)
  return { all, one, other, take, rows, shift, url }
}

describe.runIf(onPostgres)('limits on a shared server', () => {
  test('admit as many requests together as one bucket allows, and return its state', async () => {
    const { one, other } = await servers(2)
    const states = []
    for (const limits of [one, other, one, other]) states.push(await limits.charge([MINUTELY]))
    expect(states.map(({ refusedBy }) => refusedBy)).toEqual([null, null, null, 0])
    expect(states.map(taken => taken.states[0]?.remaining)).toEqual([2, 1, 0, 0])
    const resets = states.map(taken => taken.states[0]?.resetAt ?? 0)
    expect(Math.max(...resets) - Math.min(...resets)).toBeLessThan(2 * SECOND)
  })

  test('are exact when 64 clients send requests to two servers at once', async () => {
    const { take } = await servers(2)
    const buckets = [
      { key: 'ip', limit: 100, perMs: MINUTE },
      { key: 'wide', limit: 1_000, perMs: MINUTE },
    ]
    const client = async (n: number) => {
      const answers = []
      for (let turn = 0; turn < 5; turn++) answers.push(await take(n + turn, ...buckets))
      return answers
    }
    const answers = await Promise.all(Array.from({ length: 64 }, (_, n) => client(n)))
    expect(answers.flat().filter(refused => refused === null)).toHaveLength(100)
  })

  test('do not deadlock, whatever the order of the buckets', async () => {
    const { take, rows } = await servers(2)
    const [a, b] = [
      { key: 'a', limit: 1_000, perMs: MINUTE },
      { key: 'b', limit: 1_000, perMs: MINUTE },
    ]
    const client = async (n: number) => {
      for (let turn = 0; turn < 20; turn++) await take(n, ...(n % 2 === 0 ? [a, b] : [b, a]))
    }
    await Promise.all(Array.from({ length: 8 }, (_, n) => client(n)))
    expect((await rows()).map(({ used }) => used)).toEqual([160, 160])
  })

  test('charge all buckets of a request or none, and return which was full', async () => {
    const { take, rows } = await servers(2)
    const [wide, narrow] = [
      { key: 'wide', limit: 10, perMs: MINUTE },
      { key: 'narrow', limit: 1, perMs: MINUTE },
    ]
    expect(await take(0, wide, narrow)).toBeNull()
    expect(await take(1, wide, narrow)).toBe(1)
    expect(await rows()).toMatchObject([
      { key: 'narrow', used: 1 },
      { key: 'wide', used: 1 },
    ])
  })

  test('start a new window only after the old one has ended', async () => {
    const { take, shift, rows } = await servers(2)
    for (let n = 0; n < 3; n++) await take(n, MINUTELY)
    await shift(-MINUTE / 2)
    expect(await take(0, MINUTELY)).toBe(0)
    await shift(-MINUTE / 2)
    expect(await take(1, MINUTELY)).toBeNull()
    const [row] = await rows()
    expect(row?.used).toBe(1)
    expect(row?.left).toBeGreaterThan(MINUTE - 10 * SECOND)
    expect(row?.left).toBeLessThanOrEqual(MINUTE)
  })

  test('use a changed window length from the next window on', async () => {
    const { take, shift, rows } = await servers(1)
    await take(0, { ...MINUTELY, perMs: SECOND })
    await shift(-SECOND)
    await take(0, MINUTELY)
    expect((await rows())[0]?.left).toBeGreaterThan(SECOND)
  })

  test('never make a window longer because the clock of the database was set back', async () => {
    const { take, shift, rows } = await servers(1)
    for (let n = 0; n < 2; n++) await take(0, MINUTELY)
    await shift(DAY)
    await take(0, MINUTELY)
    expect((await rows())[0]).toMatchObject({ used: 3 })
    expect((await rows())[0]?.left).toBeLessThanOrEqual(MINUTE)
  })

  test('refund a charge only in the window in which it was made', async () => {
    const { one, take, shift, rows, all } = await servers(2)
    const taken = await one.charge([MINUTELY])
    await take(1, MINUTELY)
    expect(taken.giveBack(0).remaining).toBe(3)
    await all[0]?.close()
    expect(await rows()).toMatchObject([{ used: 1 }])
    const late = await one.charge([MINUTELY])
    await shift(-MINUTE)
    await take(1, MINUTELY)
    late.giveBack(0)
    await all[0]?.close()
    expect(await rows()).toMatchObject([{ used: 1 }])
  })

  test('count a request as its cost, and refund the same', async () => {
    const { one, take, rows, all } = await servers(2)
    const pair = { ...MINUTELY, cost: 2 }
    const taken = await one.charge([pair])
    expect(taken.states[0]?.remaining).toBe(1)
    expect([await take(1, pair), await take(1, MINUTELY)]).toEqual([0, null])
    taken.giveBack(0)
    await all[0]?.close()
    expect(await rows()).toMatchObject([{ used: 1 }])
    const together = await Promise.all([take(1, pair), take(1, MINUTELY)])
    expect(together).toEqual([null, 0])
  })

  test('can be read without a charge: the cached state and the current one', async () => {
    const { one, other } = await servers(2)
    expect(one.peek([MINUTELY])[0]?.remaining).toBe(3)
    await one.charge([MINUTELY])
    await other.charge([MINUTELY])
    expect(one.peek([MINUTELY])[0]?.remaining).toBe(2)
    const unused = { key: 'b', limit: 7, perMs: MINUTE }
    expect((await one.read([MINUTELY, unused])).map(({ remaining }) => remaining)).toEqual([1, 7])
  })

  test('delete expired windows and keep current ones', async () => {
    const { one, url, rows } = await servers(1)
    const { clock, limits } = await slowServer(url)
    await one.charge([MINUTELY])
    await ask(url, `insert into bucket values ('old', 3, 1000, 5)`)
    clock.ticksOn(MINUTE)
    await limits.charge([{ ...MINUTELY, key: 'b' }])
    await limits.close()
    expect((await rows()).map(({ key }) => key)).toEqual(['a', 'b'])
  })
})

/** Another server, with a clock that the test advances. */
async function slowServer(url: string) {
  let ahead = 0
  const clock = {
    ...systemClock,
    monotonicNow: () => systemClock.monotonicNow() + ahead,
    ticksOn: (ms: number) => {
      ahead += ms
    },
  }
  const database = await openDatabase(url, clock)
  onTestFinished(() => database.close())
  return { clock, limits: createPostgresLimits(database, { clock, log: silentLog }) }
}
