import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { DAY, HOUR, SECOND } from '../../src/platform/clock.ts'
import { emptyFolder } from '../support/ev-process.ts'
import { hasOpenWork } from './ledger.ts'
import { chaosService } from './service.ts'

/** Where the wall clock is after each jump, from the true time. */
const AHEAD_MS = [HOUR, DAY, 3 * DAY]
/** Longer than anything is kept. */
const YEARS_MS = 800 * DAY

const CLOCK = join(import.meta.dirname, '../support/jumping-clock.mjs')

test('a wall clock that jumps ahead, and is set right when no list is in flight, loses nothing, does nothing twice and locks nobody out', async () => {
  const folder = emptyFolder()
  const file = join(folder, 'clock')
  /** A reader sees the old or the new number, whole. */
  const setAhead = (ms: number) => {
    writeFileSync(`${file}.new`, String(ms))
    renameSync(`${file}.new`, file)
  }
  setAhead(0)
  const environment = { NODE_OPTIONS: `--import ${CLOCK}`, EV_TEST_CLOCK: file }
  const chaos = await chaosService({ process: { environment } })
  const workload = chaos.startWorkload()
  const jump = async (aheadMs: number) => {
    await workload.everyKind()
    setAhead(aheadMs)
    const { headers } = await fetch(`${chaos.service.url}/livez`)
    const nowMs = Number(headers.get('X-RateLimit-Reset')) * SECOND
    expect(Math.abs(nowMs - Date.now() - aheadMs)).toBeLessThan(HOUR / 2)
  }
  for (const aheadMs of AHEAD_MS) await jump(aheadMs)
  await workload.everyKind()
  expect([...workload.refusals.keys()].filter(status => status !== 409)).toEqual([])

  // What was kept long enough is removed at the start.
  await jump(YEARS_MS)
  expect((await chaos.service.end('SIGTERM')).code).toBe(0)
  await chaos.start().isUp
  await workload.everyKind()
  await workload.stop()
  // Rows of lists in flight wait until a clock that was set back has caught up: here none are left.
  await expect.poll(() => hasOpenWork(chaos.dataDir), { interval: 100 }).toBe(false)
  setAhead(0)
  await chaos.expectLedger(workload)
})
