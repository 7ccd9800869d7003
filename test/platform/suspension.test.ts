import { expect, test } from 'vitest'
import { MINUTE, SECOND } from '../../src/platform/clock.ts'
import { detectSuspensions } from '../../src/platform/suspension.ts'
import { fakeClock } from '../support/clock.ts'

/** Returns whether a suspension is detected since the start, after `pass` and a look at the clock. */
async function isDetected(pass: (clock: ReturnType<typeof fakeClock>) => unknown) {
  const inner = fakeClock()
  const clock = detectSuspensions(inner)
  const startedAt = clock.monotonicNow()
  clock.after(10 * SECOND, () => {})
  await pass(inner)
  return clock.suspendedSince?.(startedAt)
}

test('timers that fire in time show no suspension', async () => {
  expect(await isDetected(clock => clock.advance(MINUTE))).toBe(false)
})

test('a timer that is cancelled after it was due shows a suspension', () => {
  const inner = fakeClock()
  const clock = detectSuspensions(inner)
  const startedAt = clock.monotonicNow()
  const cancel = clock.after(10 * SECOND, () => {})
  inner.stopProcess(MINUTE)
  cancel()
  expect(clock.suspendedSince?.(startedAt)).toBe(true)
})

test('a timer that fires late shows a suspension', async () => {
  const fireLate = async (clock: ReturnType<typeof fakeClock>) => {
    clock.stopProcess(MINUTE)
    await clock.advance(1)
  }
  expect(await isDetected(fireLate)).toBe(true)
})

test('a timer that fires a second late shows none, because the event loop may be busy', async () => {
  const fireLate = async (clock: ReturnType<typeof fakeClock>) => {
    clock.stopProcess(11 * SECOND)
    await clock.advance(1)
  }
  expect(await isDetected(fireLate)).toBe(false)
})

test('a wall clock ahead of the monotonic clock shows that the machine slept', async () => {
  expect(await isDetected(clock => clock.jump(MINUTE))).toBe(true)
  expect(await isDetected(clock => clock.jump(-MINUTE))).toBe(false)
})

test('a suspension before the given time does not count', async () => {
  const inner = fakeClock()
  const clock = detectSuspensions(inner)
  clock.after(10 * SECOND, () => {})
  inner.stopProcess(MINUTE)
  await inner.advance(1)
  expect(clock.suspendedSince?.(clock.monotonicNow() + 1)).toBe(false)
})

test('a timer that was cancelled in time shows none, however often it is cancelled', () => {
  const inner = fakeClock()
  const clock = detectSuspensions(inner)
  const startedAt = clock.monotonicNow()
  const cancel = clock.after(10 * SECOND, () => {})
  cancel()
  inner.stopProcess(MINUTE)
  cancel()
  expect(clock.suspendedSince?.(startedAt)).toBe(false)
})
