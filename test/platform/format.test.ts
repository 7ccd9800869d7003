import { expect, test } from 'vitest'
import { DAY, HOUR, MINUTE, SECOND } from '../../src/platform/clock.ts'
import {
  formatBytes,
  formatDuration,
  formatDurationInWords,
  formatEstimate,
  formatMebibytes,
  formatNumber,
  formatPercent,
  formatProgress,
  joinWords,
  pluralize,
} from '../../src/platform/format.ts'

test('numbers have thousands separators', () => {
  expect([0, 999, 1_234_567, 2.5].map(formatNumber)).toEqual(['0', '999', '1,234,567', '2.5'])
  for (const value of [1_000, 12_345, 999_999, -999, -1_234, -123_456, 2 ** 53 - 1, 1e21, 1_234.5])
    expect(formatNumber(value)).toBe(value.toLocaleString('en'))
})

test.each([
  [1, 'row', '1 row'],
  [0, 'row', '0 rows'],
  [2, 'key', '2 keys'],
  [2, 'copy', '2 copies'],
  [2, 'queue entry', '2 queue entries'],
  [1, 'address', '1 address'],
  [12_345, 'address', '12,345 addresses'],
])('%d × %s: %s', (count, noun, text) => {
  expect(pluralize(count, noun)).toBe(text)
})

test('an irregular plural is passed in', () => {
  expect(pluralize(2, 'server says', 'servers say')).toBe('2 servers say')
})

test.each([
  [1, 3, '33.3%'],
  [4, 25, '16.0%'],
  [3, 3, '100%'],
  [0, 0, '0%'],
  [0, 9, '0%'],
  [1, 20_000, '< 0.1%'],
  [1, 1_000, '0.1%'],
  [19_999, 20_000, '99.9%'],
  [3, 2, '150.0%'],
  [29, 2_000, '1.5%'],
  [12_345, 1, '1,234,500.0%'],
])('%d of %d is %s: 0% is nothing, and 100% is the whole', (part, total, text) => {
  expect(formatPercent(part, total)).toBe(text)
})

test.each([
  [0, 200, '0%'],
  [199, 200, '99%'],
  [200, 200, '100%'],
  [0, 0, '100%'],
])('%d of %d rows done is %s', (done, total, text) => {
  expect(formatProgress(done, total)).toBe(text)
})

test('sizes are in powers of 1,000, limits in MiB', () => {
  const sizes = [0, 512, 12_345, 1_540_000, 99_900_000, 123_456_789, 2_400_000_000, 5e15]
  expect(sizes.map(formatBytes)).toEqual([
    ...['0 B', '512 B', '12 KB', '1.5 MB', '99.9 MB', '123 MB', '2.4 GB', '5,000 TB'],
  ])
  expect(formatMebibytes(100 * 1024 * 1024)).toBe('100 MiB')
})

test('durations use readable units', () => {
  const durations = [0, 999, 12_400, 60_000, 200_000, 3_600_000, 7_500_000, 345_600_000]
  expect(durations.map(formatDuration)).toEqual([
    ...['0 ms', '999 ms', '12 s', '1 min', '3 min 20 s', '1 h', '2 h 5 min', '4 days'],
  ])
})

test.each([
  [1_200, Math.ceil, '2 seconds'],
  [1_200, Math.floor, '1 second'],
  [59_500, Math.ceil, '1 minute'],
  [MINUTE + SECOND, Math.ceil, '2 minutes'],
  [59 * MINUTE + SECOND, Math.ceil, '1 hour'],
  [HOUR, Math.round, '1 hour'],
  [47 * HOUR, Math.floor, '47 hours'],
  [48 * HOUR, Math.floor, '2 days'],
  [6 * DAY, Math.floor, '6 days'],
])('%d ms in words, rounded by %o: %s', (ms, round, words) => {
  expect(formatDurationInWords(ms, round)).toBe(words)
})

test.each([
  [0, '1 second'],
  [1_000, '1 second'],
  [1_001, '10 seconds'],
  [49_999, '50 seconds'],
  [50_001, '1 minute'],
  [60_000, '1 minute'],
  [60_001, '2 minutes'],
  [7_199_000, '120 minutes'],
  [7_200_000, '2 hours'],
  [7_200_001, '2.5 hours'],
])('an estimate of %d ms: %s', (ms, words) => {
  expect(formatEstimate(ms)).toBe(words)
})

test('words are joined as in a sentence', () => {
  const words = ['', 'a', 'a,b', 'a,b,c'].map(text => (text === '' ? [] : text.split(',')))
  expect(words.map(one => joinWords(one, 'and'))).toEqual(['', 'a', 'a and b', 'a, b and c'])
  expect(joinWords(['text', 'json', 'csv'], 'or')).toBe('text, json or csv')
})
