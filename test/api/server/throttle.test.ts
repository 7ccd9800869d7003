import { expect, test } from 'vitest'
import { throttled } from '../../../src/api/server/server.ts'
import { fakeClock } from '../../support/clock.ts'

test('a throttled log writes the first event at once and counts the others', async () => {
  const clock = fakeClock()
  const logged: number[] = []
  const note = throttled(clock, 1_000, count => logged.push(count))
  for (let n = 0; n < 500; n++) note()
  expect(logged).toEqual([1])
  await clock.advance(999)
  note()
  expect(logged).toEqual([1])
  await clock.advance(1)
  note()
  expect(logged).toEqual([1, 501])
})
