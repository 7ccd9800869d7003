import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { DAY, HOUR, SECOND } from '../../src/platform/clock.ts'
import { emptyFolder } from '../support/ev-process.ts'
import { startChaosService } from './service.ts'

/** Offset of the wall clock from the true time after each jump. */
const AHEAD_MS = [HOUR, -DAY, 3 * DAY]
/** Longer than any retention period. */
const YEARS_MS = 800 * DAY

const CLOCK = join(import.meta.dirname, '../support/jumping-clock.mjs')

test('jumps of the wall clock in both directions lose no data, repeat no work, hold nothing up and lock out no client', async () => {
  const folder = emptyFolder()
  const file = join(folder, 'clock')
  /** Replaces the file atomically: a reader sees the old or the new number. */
  const setAhead = (ms: number) => {
    writeFileSync(`${file}.new`, String(ms))
    renameSync(`${file}.new`, file)
  }
  setAhead(0)
  const environment = { NODE_OPTIONS: `--import ${CLOCK}`, CLOCK_FILE: file }
  const chaos = await startChaosService({ process: { environment } })
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

  // Expired data is deleted at the start.
  await jump(YEARS_MS)
  expect((await chaos.service.end('SIGTERM')).code).toBe(0)
  await chaos.start().isUp
  await jump(0)
  await workload.everyKind()
  await workload.stop()
  await chaos.expectLedger(workload)
})
