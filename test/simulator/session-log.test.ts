import { expect, test } from 'vitest'
import { SessionLog } from '../../src/simulator/session-log.ts'
import { fakeClock } from '../support/clock.ts'

test('the most connections within one second, wherever that second begins', async () => {
  const clock = fakeClock()
  const attendance = new SessionLog(clock)
  const peak = () => attendance.counters().connectionsPerSecondPeak
  for (const waitMs of [0, 600, 300, 99]) {
    await clock.advance(waitMs)
    attendance.opened('a')
  }
  expect(peak()).toBe(4)
  await clock.advance(1)
  attendance.opened('b')
  expect(peak()).toBe(4)
  await clock.advance(100)
  for (const client of ['a', 'a']) attendance.opened(client)
  expect(peak()).toBe(6)
  expect(attendance.counters().clients.b).toMatchObject({ connectionsPerSecondPeak: 1 })
  attendance.reset()
  expect(peak()).toBe(0)
})
