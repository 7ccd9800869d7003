import { expect, test } from 'vitest'
import { SharedStrings } from '../../src/formats/shared-strings.ts'

test('texts are found by their number, also over several blocks', () => {
  const strings = new SharedStrings()
  const texts = Array.from({ length: 2_000 }, (_, i) => `${i} ü `.repeat(i))
  for (const text of texts) strings.add(text)
  expect(texts.every((text, i) => strings.get(i) === text.slice(0, 32_767))).toBe(true)
  for (const number of [2_000, 5_000, -1, 0.5, Number.NaN]) {
    expect(() => strings.get(number)).toThrow(/text that does not exist/)
  }
})

test('texts beyond 256 MiB are refused', () => {
  const strings = new SharedStrings()
  const fill = () => {
    for (let i = 0; i < 10_000; i += 1) strings.add('x'.repeat(32_767))
  }
  expect(fill).toThrow(/more than 256 MiB, the limit for a workbook. Save the sheet as CSV/)
})
