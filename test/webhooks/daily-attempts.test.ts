import { expect, test } from 'vitest'
import { DAY } from '../../src/platform/clock.ts'
import { countAttempts, parseDailyAttempts, successRate } from '../../src/webhooks/endpoint.ts'

const at = (day: number, isDelivered = true) => ({ startedAt: day * DAY + 1, isDelivered })

test('attempts are counted by the UTC day on which they start', () => {
  const days = countAttempts(
    [{ date: '1970-01-01', delivered: 2, failed: 1 }],
    [at(0, false), at(1), { startedAt: DAY - 1, isDelivered: true }],
  )
  expect(days).toEqual([
    { date: '1970-01-01', delivered: 3, failed: 2 },
    { date: '1970-01-02', delivered: 1, failed: 0 },
  ])
})

test('the last seven days with attempts are kept, oldest first', () => {
  const days = countAttempts(
    [],
    [9, 1, 2, 3, 4, 5, 7, 8].map(day => at(day)),
  )
  expect(days.map(({ date }) => date.slice(-2))).toEqual(['03', '04', '05', '06', '08', '09', '10'])
})

test('the success rate is the share of successful attempts', () => {
  expect(successRate(countAttempts([], [at(0), at(0), at(1, false)]))).toBe(0.6667)
  expect(successRate(countAttempts([], [at(0)]))).toBe(1)
  expect(successRate([])).toBeNull()
})

test('nothing stored is no days', () => {
  expect(parseDailyAttempts(null)).toEqual([])
  expect(parseDailyAttempts('[{"date":"2026-03-21","delivered":1,"failed":0}]')).toEqual([
    { date: '2026-03-21', delivered: 1, failed: 0 },
  ])
})
