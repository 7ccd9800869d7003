import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openSqliteLimits } from '../../../src/accounts/rate-limits/sqlite-windows.ts'
import { DAY, MINUTE } from '../../../src/platform/clock.ts'
import { silentLog } from '../../../src/platform/log.ts'
import { fakeClock } from '../../support/clock.ts'
import { tempFolder } from '../../support/database.ts'

const MINUTELY = { key: 'a', limit: 3, perMs: MINUTE }

function bench(clock = fakeClock(), file = join(tempFolder(), 'limits.sqlite'), log = silentLog) {
  const limits = openSqliteLimits(file, { clock, log })
  onTestFinished(() => limits.close())
  const take = async (...buckets: (typeof MINUTELY)[]) => (await limits.charge(buckets)).refusedBy
  return { limits, clock, file, take }
}

describe('a bucket', () => {
  test('admits as many requests as it allows, and returns its state', async () => {
    const { limits, clock } = bench()
    const states = []
    for (let n = 0; n < 4; n++) states.push(await limits.charge([MINUTELY]))
    expect(states.map(({ refusedBy }) => refusedBy)).toEqual([null, null, null, 0])
    expect(states.map(one => one.states[0]?.remaining)).toEqual([2, 1, 0, 0])
    expect(states[3]?.states[0]).toEqual({
      limit: 3,
      remaining: 0,
      resetAt: clock.now() + MINUTE,
    })
  })

  test('is reset when its window has ended, and not before', async () => {
    const { take, clock } = bench()
    for (let n = 0; n < 3; n++) await take(MINUTELY)
    await clock.advance(MINUTE - 1)
    expect(await take(MINUTELY)).toBe(0)
    await clock.advance(1)
    expect(await take(MINUTELY)).toBeNull()
  })

  test('is exact for 64 concurrent requests', async () => {
    const { take } = bench()
    const bucket = { key: 'a', limit: 100, perMs: MINUTE }
    const requested = Array.from({ length: 64 * 10 }, () => take(bucket))
    expect((await Promise.all(requested)).filter(refused => refused === null)).toHaveLength(100)
  })

  test('that is full leaves the others uncharged, and is reported', async () => {
    const { limits, take } = bench()
    const [wide, narrow] = [
      { key: 'wide', limit: 10, perMs: MINUTE },
      { key: 'narrow', limit: 1, perMs: MINUTE },
    ]
    expect(await take(wide, narrow)).toBeNull()
    expect(await take(wide, narrow)).toBe(1)
    expect(limits.peek([wide])[0]?.remaining).toBe(9)
  })

  test('refunds a charge only in the window in which it was made', async () => {
    const { limits, clock, take } = bench()
    const taken = await limits.charge([MINUTELY])
    await take(MINUTELY)
    expect(taken.giveBack(0)).toMatchObject({ limit: 3, remaining: 2 })
    const late = await limits.charge([MINUTELY])
    await clock.advance(MINUTE)
    await take(MINUTELY)
    expect(late.giveBack(0)).toMatchObject({ remaining: 2 })
  })

  test('counts a request as its cost, and refunds the same', async () => {
    const { limits, take } = bench()
    const pair = { ...MINUTELY, cost: 2 }
    const taken = await limits.charge([pair])
    expect(taken.states[0]?.remaining).toBe(1)
    expect([await take(pair), await take(MINUTELY)]).toEqual([0, null])
    expect(taken.giveBack(0).remaining).toBe(2)
    expect([await take(pair), await take(MINUTELY)]).toEqual([null, 0])
  })

  test('is not charged when it is read', async () => {
    const { limits } = bench()
    for (let n = 0; n < 5; n++) expect(limits.peek([MINUTELY])[0]?.remaining).toBe(3)
  })

  test('with a reduced limit has 0 remaining, not less', async () => {
    const { limits, take } = bench()
    for (let n = 0; n < 3; n++) await take(MINUTELY)
    expect(limits.peek([{ ...MINUTELY, limit: 2 }])[0]?.remaining).toBe(0)
  })
})

describe('after the end of the process', () => {
  test('counts continue, even if the file was not closed', async () => {
    const { file, clock, take } = bench()
    for (let n = 0; n < 3; n++) await take(MINUTELY)
    const next = bench(clock, file)
    expect(await next.take(MINUTELY)).toBe(0)
    await clock.advance(MINUTE)
    expect(await next.take(MINUTELY)).toBeNull()
  })

  test('a window continues from its start', async () => {
    const { file, clock, limits, take } = bench()
    await take(MINUTELY)
    await clock.advance(40_000)
    limits.close()
    const next = bench(clock, file)
    expect(next.limits.peek([MINUTELY])[0]).toEqual({
      limit: 3,
      remaining: 2,
      resetAt: clock.now() + 20_000,
    })
  })

  test('expired windows are deleted', async () => {
    const { file, clock, limits, take } = bench()
    for (let n = 0; n < 3; n++) await take(MINUTELY)
    limits.close()
    await clock.advance(MINUTE)
    expect(await bench(clock, file).take(MINUTELY)).toBeNull()
  })

  test('a wall clock that was set back by a day locks no client out for longer than one window', async () => {
    const { file, clock, limits, take } = bench()
    for (let n = 0; n < 3; n++) await take(MINUTELY)
    limits.close()
    clock.jump(-DAY)
    const next = bench(clock, file)
    expect(await next.take(MINUTELY)).toBe(0)
    await clock.advance(MINUTE)
    expect(await next.take(MINUTELY)).toBeNull()
  })
})

test.each([-DAY, DAY])(
  'a wall clock that jumps by %i ms while counting changes only the dates',
  async jump => {
    const { clock, limits, take } = bench()
    for (let n = 0; n < 3; n++) await take(MINUTELY)
    clock.jump(jump)
    expect(await take(MINUTELY)).toBe(0)
    expect(limits.peek([MINUTELY])[0]?.resetAt).toBe(clock.now() + MINUTE)
    await clock.advance(MINUTE)
    expect(await take(MINUTELY)).toBeNull()
  },
)

test('a damaged file is replaced, with a warning in the log', async () => {
  const file = join(tempFolder(), 'limits.sqlite')
  writeFileSync(file, 'not a database at all, and longer than a header '.repeat(100))
  const warnings: string[] = []
  const { take } = bench(fakeClock(), file, {
    ...silentLog,
    warn: text => void warnings.push(text),
  })
  expect(await take(MINUTELY)).toBeNull()
  expect(warnings).toEqual(['rate limit file is damaged; creating a new one'])
})
