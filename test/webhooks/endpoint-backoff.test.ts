import { describe, expect, test } from 'vitest'
import { DAY, HOUR, MINUTE, SECOND } from '../../src/platform/clock.ts'
import { createEndpointBackoff } from '../../src/webhooks/endpoint-backoff.ts'
import { fakeClock } from '../support/clock.ts'

const URL = 'https://app.test/hook'

describe('the backoff of an endpoint', () => {
  test('lasts for the requested time, monotonic, and at most an hour', async () => {
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

  test('ends when the URL changes', () => {
    const endpoints = createEndpointBackoff(fakeClock())
    endpoints.backOff('wh_a', MINUTE, URL)
    endpoints.resetIfMoved('wh_a', URL)
    expect(endpoints.backoffMs('wh_a')).toBe(MINUTE)
    endpoints.resetIfMoved('wh_a', `${URL}/fixed`)
    expect(endpoints.backoffMs('wh_a')).toBe(0)
  })

  test('is not shortened by another response', () => {
    const endpoints = createEndpointBackoff(fakeClock())
    endpoints.backOff('wh_a', MINUTE, URL)
    endpoints.backOff('wh_a', SECOND, URL)
    endpoints.backOff('wh_a', 0, URL)
    expect(endpoints.backoffMs('wh_a')).toBe(MINUTE)
  })
})

describe('the failure series of an endpoint', () => {
  test('starts with the first failure, and again after a success', async () => {
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

  test('starts again after a sleep of the machine and after a change of the wall clock', async () => {
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

  test('continues through small clock corrections', async () => {
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

test('an endpoint is slow if its last attempt took five seconds or more, for two days', async () => {
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
