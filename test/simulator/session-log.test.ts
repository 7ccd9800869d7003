import { expect, test } from 'vitest'
import { SessionLog } from '../../src/simulator/counters.ts'
import { fakeClock } from '../support/clock.ts'

test('the peak rate is the maximum of any one second', async () => {
  const clock = fakeClock()
  const sessionLog = new SessionLog(clock)
  const peak = () => sessionLog.counters().connectionsPerSecondPeak
  for (const waitMs of [0, 600, 300, 99]) {
    await clock.advance(waitMs)
    sessionLog.opened('a')
  }
  expect(peak()).toBe(4)
  await clock.advance(1)
  sessionLog.opened('b')
  expect(peak()).toBe(4)
  await clock.advance(100)
  for (const client of ['a', 'a']) sessionLog.opened(client)
  expect(peak()).toBe(6)
  expect(sessionLog.counters().clients.b).toMatchObject({ connectionsPerSecondPeak: 1 })
  sessionLog.reset()
  expect(peak()).toBe(0)
})
