import { expect, test } from 'vitest'
import { FaultLog } from '../../src/queue/boss-queue.ts'
import { fakeClock } from '../support/clock.ts'
import { recordingLog } from '../support/log.ts'

function faultLog() {
  const clock = fakeClock()
  const { log, lines } = recordingLog()
  return { clock, lines, faults: new FaultLog({ clock, log, clearMs: 5_000 }) }
}

test('faults of the database are told once, then each minute, and once that they are over', async () => {
  const { clock, lines, faults } = faultLog()
  for (let second = 0; second < 90; second++) {
    faults.fault('work cannot be fetched now', { kind: 'a', error: 'refused' })
    faults.fault('work that runs cannot be kept now', { kind: 'b', error: 'refused' })
    // One connection of several is still good.
    faults.success()
    await clock.advance(1_000)
  }
  for (let second = 0; second < 30; second++) {
    faults.success()
    await clock.advance(1_000)
  }
  const fault = { level: 'error', message: 'work cannot be fetched now' }
  expect(lines).toEqual([
    { ...fault, fields: { kind: 'a', error: 'refused' } },
    { ...fault, fields: { kind: 'a', error: 'refused', repeated: 119 } },
    { level: 'info', message: 'the queue reaches its database again', fields: {} },
  ])
})

test('faults that come again after the all-clear are told at once', async () => {
  const { clock, lines, faults } = faultLog()
  for (let outage = 0; outage < 2; outage++) {
    faults.fault('work cannot be fetched now', { error: 'refused' })
    await clock.advance(5_000)
    faults.success()
  }
  expect(lines.map(({ level }) => level)).toEqual(['error', 'info', 'error', 'info'])
})

test('runs that fail are told once of each kind, and no all-clear follows', async () => {
  const { clock, lines, faults } = faultLog()
  for (const kind of ['a', 'a', 'b']) faults.failure(kind, { key: 'k', error: 'broken' })
  await clock.advance(5_000)
  faults.success()
  const line = { level: 'error', message: 'work failed and is tried again' }
  expect(lines).toEqual([
    { ...line, fields: { kind: 'a', key: 'k', error: 'broken' } },
    { ...line, fields: { kind: 'b', key: 'k', error: 'broken' } },
  ])
})
