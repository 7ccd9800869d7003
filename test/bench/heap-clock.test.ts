import { expect, test } from 'vitest'
import { HeapClock } from '../../bench/typical-list/heap-clock.ts'
import { xorshift } from '../support/random.ts'

test('timers fire in the order of their times, and those of one time in the order they were set', async () => {
  const clock = new HeapClock()
  const random = xorshift(7)
  const timers = Array.from({ length: 500 }, (_, n) => ({
    n,
    delayMs: Math.floor(random() * 10) * 100,
  }))
  const fired: number[] = []
  for (const { n, delayMs } of timers) clock.after(delayMs, () => fired.push(n))
  await clock.run(() => fired.length === timers.length)
  const expected = timers.toSorted((a, b) => a.delayMs - b.delayMs).map(({ n }) => n)
  expect(fired).toEqual(expected)
})

test('a cancelled timer does not fire', async () => {
  const clock = new HeapClock()
  const fired: string[] = []
  clock.after(100, () => fired.push('cancelled'))()
  clock.after(200, () => fired.push('other'))
  await clock.run(() => false)
  expect(fired).toEqual(['other'])
  expect(clock.now()).toBe(200)
})
