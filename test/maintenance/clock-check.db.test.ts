import { describe, expect, test } from 'vitest'
import { ClockCheck } from '../../src/maintenance/retention-job.ts'
import { DAY, HOUR } from '../../src/platform/clock.ts'
import { silentLog } from '../../src/platform/log.ts'
import { fakeClock } from '../support/clock.ts'
import { onPostgres, tempDatabase } from '../support/database.ts'

async function services() {
  const clock = fakeClock(Date.now())
  const database = await tempDatabase({ clock })
  const warnings: string[] = []
  const log = { ...silentLog, warn: (text: string) => void warnings.push(text) }
  /** As in a new process. */
  const start = () => new ClockCheck({ database, clock, log })
  return { clock, database, warnings, start }
}

/** Returns for each hour whether the clock is trusted. */
async function hours(check: ClockCheck, clock: ReturnType<typeof fakeClock>, count: number) {
  const trusted: boolean[] = []
  for (let n = 0; n < count; n++) {
    await clock.advance(HOUR)
    trusted.push(await check.isTrusted())
  }
  return trusted
}

describe('the clock', () => {
  test('is trusted while it runs, after a sleep of hours, and when it is set back and corrected', async () => {
    const { clock, start, warnings } = await services()
    const check = start()
    expect(await check.isTrusted()).toBe(true)
    expect(await hours(check, clock, 3)).toEqual([true, true, true])
    for (const jump of [20 * HOUR, -5 * DAY, 5 * DAY]) {
      clock.jump(jump)
      expect(await check.isTrusted()).toBe(true)
    }
    expect(warnings).toEqual([])
  })

  test.skipIf(onPostgres)('is not trusted for a day after a jump ahead', async () => {
    const { clock, start, warnings } = await services()
    const check = start()
    await check.isTrusted()
    clock.jump(40 * DAY)
    expect(await check.isTrusted()).toBe(false)
    expect(await hours(check, clock, 24)).toEqual([...Array(23).fill(false), true])
    expect(warnings).toEqual([expect.stringContaining('more than a day ahead')])
    expect(await hours(check, clock, 2)).toEqual([true, true])
  })

  test.skipIf(onPostgres)(
    'is trusted when it was ahead at the start and has been corrected',
    async () => {
      const { clock, start } = await services()
      await start().isTrusted()
      clock.jump(365 * DAY)
      const check = start()
      expect(await check.isTrusted()).toBe(false)
      clock.jump(-365 * DAY)
      expect(await check.isTrusted()).toBe(true)
    },
  )

  test.skipIf(onPostgres)('is not trusted for another day after a second jump', async () => {
    const { clock, start, warnings } = await services()
    const check = start()
    await check.isTrusted()
    clock.jump(40 * DAY)
    await check.isTrusted()
    await hours(check, clock, 20)
    clock.jump(40 * DAY)
    expect(await hours(check, clock, 24)).toEqual(Array(24).fill(false))
    expect(warnings).toHaveLength(2)
  })

  test.runIf(onPostgres)('is trusted if and only if the database server agrees', async () => {
    const { clock, database, start } = await services()
    clock.jump(-40 * DAY)
    await start().isTrusted()
    clock.jump(40 * DAY)
    expect(await start().isTrusted()).toBe(true)
    clock.jump(40 * DAY)
    expect(await start().isTrusted()).toBe(false)
    expect(database.dialect).toBe('postgres')
  })
})
