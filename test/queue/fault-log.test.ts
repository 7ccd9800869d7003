import { expect, test } from 'vitest'
import { FaultLog } from '../../src/queue/boss-queue.ts'
import { QUEUE_LOG } from '../../src/queue/telemetry.ts'
import { fakeClock } from '../support/clock.ts'
import { recordingLog } from '../support/log.ts'

function faultLog() {
  const clock = fakeClock()
  const { log, lines } = recordingLog()
  return { clock, lines, faults: new FaultLog({ clock, log, clearMs: 5_000 }) }
}

test('logs database faults once, then every minute, and once when they are over', async () => {
  const { clock, lines, faults } = faultLog()
  for (let second = 0; second < 90; second++) {
    faults.fault(QUEUE_LOG.tasksNotClaimed, { kind: 'a', error: 'refused' })
    faults.fault(QUEUE_LOG.claimsNotRenewed, { kind: 'b', error: 'refused' })
    // One of several connections still works.
    faults.success()
    await clock.advance(1_000)
  }
  for (let second = 0; second < 30; second++) {
    faults.success()
    await clock.advance(1_000)
  }
  const fault = { level: 'error', message: 'tasks could not be claimed; will retry' }
  expect(lines).toEqual([
    { ...fault, fields: { kind: 'a', error: 'refused' } },
    { ...fault, fields: { kind: 'a', error: 'refused', repeated: 119 } },
    { level: 'info', message: 'queue database available again', fields: {} },
  ])
})

test('logs new faults after a recovery at once', async () => {
  const { clock, lines, faults } = faultLog()
  for (let outage = 0; outage < 2; outage++) {
    faults.fault(QUEUE_LOG.tasksNotClaimed, { error: 'refused' })
    await clock.advance(5_000)
    faults.success()
  }
  expect(lines.map(({ level }) => level)).toEqual(['error', 'info', 'error', 'info'])
})

test('logs failed runs once per kind, without a recovery message', async () => {
  const { clock, lines, faults } = faultLog()
  for (const kind of ['a', 'a', 'b']) faults.failure(kind, { key: 'k', error: 'broken' })
  await clock.advance(5_000)
  faults.success()
  const line = { level: 'error', message: 'task failed; will retry' }
  expect(lines).toEqual([
    { ...line, fields: { kind: 'a', key: 'k', error: 'broken' } },
    { ...line, fields: { kind: 'b', key: 'k', error: 'broken' } },
  ])
})
