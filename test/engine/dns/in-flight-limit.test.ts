import { describe, expect, test } from 'vitest'
import { InFlightLimit } from '../../../src/engine/dns/in-flight-limit.ts'

function answer(limit: InFlightLimit, count: number) {
  for (let i = 0; i < count; i++) limit.onAnswered()
}

describe('the limit of DNS queries in flight', () => {
  test('grows by an eighth per round trip, up to 600', () => {
    const limit = new InFlightLimit()
    expect(limit.value).toBe(200)
    answer(limit, 200)
    expect(limit.value).toBe(225)
    answer(limit, 10_000)
    expect(limit.value).toBe(600)
  })

  test('is halved after a loss or a refusal, down to 100', () => {
    const limit = new InFlightLimit()
    answer(limit, 10_000)
    limit.onOverload(10, 1_510)
    expect(limit.value).toBe(300)
    limit.onOverload(2_000, 3_500)
    limit.onOverload(4_000, 5_500)
    limit.onOverload(6_000, 7_500)
    expect(limit.value).toBe(100)
  })

  test('is halved once for all queries that were sent before it was', () => {
    const limit = new InFlightLimit()
    limit.onOverload(0, 1_500)
    limit.onOverload(20, 1_520)
    limit.onOverload(1_500, 3_000)
    expect(limit.value).toBe(100)
    answer(limit, 800)
    limit.onOverload(1_501, 3_001)
    expect(limit.value).toBe(100)
  })

  test.each([
    [1, 1, 1],
    [150, 150, 150],
    [400, 200, 400],
    [10_000, 200, 600],
  ])('a maximum of %i starts at %i and grows to %i', (max, initial, grown) => {
    const limit = new InFlightLimit(max)
    expect(limit.value).toBe(initial)
    answer(limit, 10_000)
    expect(limit.value).toBe(grown)
  })
})
