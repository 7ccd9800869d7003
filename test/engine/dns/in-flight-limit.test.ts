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

  test('is halved after a loss, down to 100', () => {
    const limit = new InFlightLimit()
    answer(limit, 10_000)
    const halved = [1, 2, 3, 4].map(() => {
      limit.onLost(limit.reductions)
      return limit.value
    })
    expect(halved).toEqual([300, 150, 100, 100])
  })

  test('is half of the queries in flight after a refusal, down to 10', () => {
    const limit = new InFlightLimit()
    const halved = [151, 75, 37, 18, 10].map(inFlight => {
      const isLower = limit.onRefused(limit.reductions, inFlight)
      return [isLower, limit.value]
    })
    expect(halved).toEqual([
      [true, 75],
      [true, 37],
      [true, 18],
      [true, 10],
      [false, 10],
    ])
  })

  test('does not grow by a loss after refusals', () => {
    const limit = new InFlightLimit()
    limit.onRefused(0, 40)
    limit.onLost(1)
    expect(limit.value).toBe(20)
  })

  test('stays if one of a few queries is refused', () => {
    const limit = new InFlightLimit()
    expect([limit.onRefused(0, 10), limit.value]).toEqual([false, 200])
  })

  test('is halved once for all queries that were sent before', () => {
    const limit = new InFlightLimit()
    answer(limit, 10_000)
    limit.onLost(0)
    limit.onLost(0)
    expect([limit.onRefused(0, 400), limit.value]).toEqual([true, 300])
    limit.onLost(1)
    expect(limit.value).toBe(150)
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
