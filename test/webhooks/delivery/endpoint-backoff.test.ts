import { describe, expect, test } from 'vitest'
import { DAY, HOUR, MINUTE, SECOND } from '../../../src/platform/clock.ts'
import { createEndpointBackoff } from '../../../src/webhooks/delivery/endpoint-backoff.ts'
import { fakeClock } from '../../support/clock.ts'

const URL = 'https://app.test/hook'

describe('the rest of an endpoint', () => {
  test('lasts as long as was asked for, by time that passes, and an hour at most', async () => {
    const clock = fakeClock()
    const endpoints = createEndpointBackoff(clock)
    expect(endpoints.backoffMs('wh_a')).toBe(0)
    endpoints.backOff('wh_a', 20 * SECOND, URL)
    endpoints.backOff('wh_b', 2 * DAY, URL)
    clock.jump(DAY)
    expect([endpoints.backoffMs('wh_a'), endpoints.backoffMs('wh_b')]).toEqual([20 * SECOND, HOUR])
    await clock.advance(20 * SECOND)
    expect([endpoints.backoffMs('wh_a'), endpoints.backoffMs('wh_c')]).toEqual([0, 0])
    expect(endpoints.backoffMs('wh_b')).toBe(HOUR - 20 * SECOND)
  })

  test('ends when the endpoint is to be found elsewhere', () => {
    const endpoints = createEndpointBackoff(fakeClock())
    endpoints.backOff('wh_a', MINUTE, URL)
    endpoints.resetIfMoved('wh_a', URL)
    expect(endpoints.backoffMs('wh_a')).toBe(MINUTE)
    endpoints.resetIfMoved('wh_a', `${URL}/mended`)
    expect(endpoints.backoffMs('wh_a')).toBe(0)
  })

  test('is not made shorter by another answer', () => {
    const endpoints = createEndpointBackoff(fakeClock())
    endpoints.backOff('wh_a', MINUTE, URL)
    endpoints.backOff('wh_a', SECOND, URL)
    endpoints.backOff('wh_a', 0, URL)
    expect(endpoints.backoffMs('wh_a')).toBe(MINUTE)
  })
})

describe('how long an endpoint has been seen to fail', () => {
  test('counts from the first failure, and anew after a success', async () => {
    const clock = fakeClock()
    const endpoints = createEndpointBackoff(clock)
    expect(endpoints.failed('wh_a')).toBe(0)
    await clock.advance(HOUR)
    expect([endpoints.failed('wh_a'), endpoints.failed('wh_b')]).toEqual([HOUR, 0])
    await clock.advance(DAY)
    expect(endpoints.failed('wh_a')).toBe(25 * HOUR)
    endpoints.delivered('wh_a')
    expect(endpoints.failed('wh_a')).toBe(0)
  })

  test('counts anew after the machine slept, and after the wall clock was changed', async () => {
    for (const jumpMs of [10 * DAY, -10 * DAY, MINUTE]) {
      const clock = fakeClock()
      const endpoints = createEndpointBackoff(clock)
      endpoints.failed('wh_a')
      await clock.advance(2 * HOUR)
      clock.jump(jumpMs)
      expect(endpoints.failed('wh_a')).toBe(0)
      await clock.advance(HOUR)
      expect(endpoints.failed('wh_a')).toBe(HOUR)
    }
  })

  test('goes on through the small corrections of a clock', async () => {
    const clock = fakeClock()
    const endpoints = createEndpointBackoff(clock)
    endpoints.failed('wh_a')
    for (let n = 1; n <= 100; n++) {
      await clock.advance(HOUR)
      clock.jump(2 * SECOND)
      expect(endpoints.failed('wh_a')).toBe(n * HOUR)
    }
  })
})

test('an endpoint is slow when it was asked last and took five seconds or more, for two days', async () => {
  const clock = fakeClock()
  const endpoints = createEndpointBackoff(clock)
  expect(endpoints.isSlow('wh_a')).toBe(false)
  endpoints.recordDuration('wh_a', 5 * SECOND)
  endpoints.recordDuration('wh_b', 5 * SECOND - 1)
  expect([endpoints.isSlow('wh_a'), endpoints.isSlow('wh_b')]).toEqual([true, false])
  endpoints.recordDuration('wh_a', 10)
  expect(endpoints.isSlow('wh_a')).toBe(false)
  endpoints.recordDuration('wh_a', 30 * SECOND)
  await clock.advance(2 * DAY - 1)
  expect(endpoints.isSlow('wh_a')).toBe(true)
  await clock.advance(2)
  expect(endpoints.isSlow('wh_a')).toBe(false)
})
