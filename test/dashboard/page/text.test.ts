import { describe, expect, test } from 'vitest'
import { badge, count, duration, number, percent, time } from '../../../src/dashboard/page/text.ts'

describe('numbers', () => {
  test('have their thousands apart and their unit behind them', () => {
    expect(number(1_234_567)).toBe('1,234,567')
    expect(count(1, 'address', 'addresses')).toBe('1 address')
    expect(count(0, 'row')).toBe('0 rows')
    expect(count(12_345, 'address', 'addresses')).toBe('12,345 addresses')
  })

  test('shares are of a whole, and of nothing they are nothing', () => {
    expect([percent(1, 3), percent(3, 3), percent(0, 0)]).toEqual(['33.3 %', '100 %', '0 %'])
    expect([percent(1, 20_000), percent(1, 1_000)]).toEqual(['< 0.1 %', '0.1 %'])
  })

  test('durations have the units that people would use', () => {
    const told = [0, 999, 12_400, 60_000, 200_000, 3_600_000, 7_500_000, 345_600_000].map(duration)
    expect(told).toEqual([
      ...['0 ms', '999 ms', '12 s', '1 min', '3 min 20 s', '1 h', '2 h 5 min', '4 days'],
    ])
  })
})

describe('times', () => {
  test('are in UTC for who has no scripts, and for scripts to show in the reader’s zone', async () => {
    expect(String(await time(Date.UTC(2026, 2, 21, 10, 30)))).toBe(
      '<time datetime="2026-03-21T10:30:00.000Z" title="2026-03-21 10:30:00 UTC">2026-03-21 10:30:00 UTC</time>',
    )
  })

  test('that never were are told as asked', async () => {
    expect(String(await time(null, 'never'))).toBe('never')
  })
})

test('a class is told by a word and a sign, not by its colour alone', async () => {
  expect(String(await badge('risky'))).toMatch(/is-risky.*aria-hidden="true">!<\/span> risky/)
})
