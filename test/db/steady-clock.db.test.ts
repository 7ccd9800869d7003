import { join } from 'node:path'
import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import { type Database, openDatabase } from '../../src/db/database.ts'
import { serverNow } from '../../src/db/server-time.ts'
import { SteadyClock } from '../../src/db/steady-clock.ts'
import { startClockSync, synchronizeClock } from '../../src/db/synchronize-clock.ts'
import { DAY, HOUR, MINUTE, SECOND } from '../../src/platform/clock.ts'
import { silentLog } from '../../src/platform/log.ts'
import { type FakeClock, fakeClock } from '../support/clock.ts'
import { onPostgres, tempDatabase, tempFolder, tempSqlite } from '../support/database.ts'
import { tempPostgres } from '../support/postgres-pool.ts'
import { waitUntil } from '../support/wait.ts'

const JUMPS: [string, number][] = [
  ['back by an hour', -HOUR],
  ['back by a day', -DAY],
  ['back by fifty years', -50 * 365 * DAY],
  ['ahead by an hour', HOUR],
  ['ahead by twelve years', 12 * 365 * DAY],
]

/** Opens a file again, as the next process does. */
const open = (file: string, clock: FakeClock): Promise<Database> =>
  openDatabase(tempSqlite(file), clock)

describe.skipIf(onPostgres)('the steady clock on SQLite', () => {
  test.each(JUMPS)('advances by real time although the wall clock is set %s', async (_, jumpMs) => {
    const clock = fakeClock()
    const { steadyClock } = await tempDatabase({ clock })
    const start = clock.now()
    await clock.advance(MINUTE)
    clock.jump(jumpMs)
    expect(steadyClock.now()).toBe(start + MINUTE)
    await clock.advance(MINUTE)
    expect(steadyClock.now()).toBe(start + 2 * MINUTE)
  })

  test.each(JUMPS)('shows times of a wall clock that was set %s, at once', async (_, jumpMs) => {
    const clock = fakeClock()
    const database = await tempDatabase({ clock })
    const { steadyClock } = database
    const dueAt = steadyClock.now() + HOUR
    clock.jump(jumpMs)
    expect(steadyClock.toWallTime(dueAt)).toBe(clock.now() + HOUR)
    await synchronizeClock(database)
    expect(steadyClock.toWallTime(dueAt)).toBe(clock.now() + HOUR)
  })

  test.each(JUMPS)('continues after a restart when the clock was set %s before', async (_, ms) => {
    const clock = fakeClock()
    const file = join(tempFolder(), 'ev.sqlite')
    const first = await open(file, clock)
    await synchronizeClock(first)
    clock.jump(ms)
    expect(await synchronizeClock(first)).toBe(ms)
    const before = first.steadyClock.now()
    await first.close()
    await clock.advance(5 * MINUTE)
    const { steadyClock, close } = await open(file, clock)
    expect(steadyClock.now()).toBe(before + 5 * MINUTE)
    expect(steadyClock.toWallTime(steadyClock.now())).toBe(clock.now())
    await close()
  })

  test('never goes back when the clock is set back while no process runs', async () => {
    const clock = fakeClock()
    const file = join(tempFolder(), 'ev.sqlite')
    const first = await open(file, clock)
    await synchronizeClock(first)
    const before = first.steadyClock.now()
    await first.close()
    clock.jump(-400 * DAY)
    const { steadyClock, close } = await open(file, clock)
    expect(steadyClock.now()).toBe(before)
    await clock.advance(MINUTE)
    expect(steadyClock.now()).toBe(before + MINUTE)
    await close()
  })

  test('counts the time for which the machine was suspended', async () => {
    const clock = fakeClock()
    const database = await tempDatabase({ clock })
    const start = clock.now()
    clock.suspend(8 * HOUR)
    expect(await synchronizeClock(database)).toBe(0)
    expect(database.steadyClock.now()).toBe(start + 8 * HOUR)
  })

  test('follows corrections by NTP, and is written at most every ten seconds', async () => {
    const clock = fakeClock()
    const database = await tempDatabase({ clock })
    await synchronizeClock(database)
    const read = () =>
      sql`select value from setting where name = 'steady-clock'`.execute(database.db)
    const stored = (await read()).rows
    clock.jump(SECOND)
    await clock.advance(9 * SECOND - 1)
    expect(await synchronizeClock(database)).toBe(0)
    expect(database.steadyClock.now()).toBe(clock.now())
    expect((await read()).rows).toEqual(stored)
  })

  test('says in the log by how much the clock was set', async () => {
    const clock = fakeClock()
    const database = await tempDatabase({ clock })
    const lines: unknown[] = []
    const loop = startClockSync(database, {
      ...silentLog,
      warn: (message, fields) => void lines.push([message, fields]),
    })
    await waitUntil(() => clock.pending > 0)
    clock.jump(-HOUR)
    await clock.advance(10 * SECOND)
    await waitUntil(() => lines.length > 0)
    expect(lines).toEqual([
      ['the clock was set back; what waits is still due after its remaining time', { by: '1 h' }],
    ])
    await loop.stop()
  })
})

describe.skipIf(onPostgres)('processes that share a database', () => {
  /** Two members whose monotonic and wall clocks differ, on one reference clock. */
  async function createMembers() {
    const reference = fakeClock()
    const base = await tempDatabase({ clock: reference })
    const member = (clock: FakeClock): Database => {
      const steadyClock = new SteadyClock(clock, 'postgres')
      return { ...base, dialect: 'sqlite', clock: reference, steadyClock }
    }
    const [a, b] = [fakeClock(Date.UTC(2019, 0)), fakeClock(Date.UTC(2040, 0))]
    const [one, two] = [member(a), member(b)]
    for (const { steadyClock } of [one, two]) {
      steadyClock.continueFrom({ reference: reference.now(), stored: null })
    }
    const pass = async (ms: number) => {
      for (const clock of [reference, a, b]) await clock.advance(ms)
    }
    const sync = async () => [await synchronizeClock(one), await synchronizeClock(two)]
    await sync()
    const times = () => [one.steadyClock.now(), two.steadyClock.now()]
    return { reference, a, b, pass, sync, times, start: reference.now() }
  }

  test('have the same time although their clocks differ', async () => {
    const { a, pass, times, sync, start } = await createMembers()
    await pass(MINUTE)
    a.jump(-DAY)
    expect(await sync()).toEqual([0, 0])
    expect(times()).toEqual([start + MINUTE, start + MINUTE])
  })

  test.each(JUMPS)('keep it when the clock of the server is set %s', async (_, jumpMs) => {
    const { reference, pass, times, sync, start } = await createMembers()
    await pass(MINUTE)
    reference.jump(jumpMs)
    // The first one corrects the difference, the other sees that.
    expect(await sync()).toEqual([jumpMs, 0])
    await pass(MINUTE)
    expect(await sync()).toEqual([0, 0])
    expect(times()).toEqual([start + 2 * MINUTE, start + 2 * MINUTE])
  })

  test('are not held up by one whose virtual machine was paused', async () => {
    const { reference, b, sync, times, start } = await createMembers()
    await reference.advance(HOUR)
    await b.advance(HOUR)
    // The clock of `a` stood still, so the clock of the server seems to have jumped.
    expect(await sync()).toEqual([HOUR, -HOUR])
    expect(await sync()).toEqual([0, 0])
    expect(times()).toEqual([start + HOUR, start + HOUR])
  })
})

test.runIf(onPostgres)('the steady clock is that of the server, not of the machine', async () => {
  const url = await tempPostgres()
  const clock = fakeClock(Date.UTC(1999, 0))
  const first = await openDatabase(url, clock)
  await synchronizeClock(first)
  const before = first.steadyClock.now()
  expect(Math.abs(before - (await serverNow(first)))).toBeLessThan(MINUTE)
  // As if the clock of the server had been set back by a day while another process ran.
  const setBack = { aheadMs: DAY, at: before + DAY }
  await first.db
    .updateTable('setting')
    .set({ value: JSON.stringify(setBack) })
    .execute()
  const second = await openDatabase(url, fakeClock(Date.UTC(2040, 0)))
  for (const { steadyClock } of [first, second]) {
    if (steadyClock === first.steadyClock) await synchronizeClock(first)
    expect(Math.abs(steadyClock.now() - before - DAY)).toBeLessThan(MINUTE)
    expect(Math.abs(steadyClock.toWallTime(steadyClock.now()) - before)).toBeLessThan(MINUTE)
  }
  await Promise.all([first.close(), second.close()])
})
