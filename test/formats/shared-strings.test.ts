import { expect, test } from 'vitest'
import { SharedStrings } from '../../src/formats/shared-strings.ts'

const MIB = 1024 * 1024

test('texts are found by their number, also over several blocks', () => {
  const strings = new SharedStrings()
  const texts = Array.from({ length: 2_000 }, (_, i) => `${i} ü `.repeat(i))
  for (const text of texts) strings.add(text)
  expect(texts.every((text, i) => strings.get(i) === text.slice(0, 32_767))).toBe(true)
  for (const number of [2_000, 5_000, -1, 0.5, Number.NaN]) {
    expect(strings.get(number)).toBeNull()
  }
})

test('texts beyond the memory limit are refused', () => {
  const strings = new SharedStrings({ bytesMax: MIB })
  const text = 'x'.repeat(32_756) // 32 KiB with its position
  for (let i = 0; i < 32; i += 1) strings.add(text)
  expect(() => strings.add('')).toThrow(
    /more than 1 MiB, the limit for a workbook. Save the sheet as CSV/,
  )
})

test('more texts than the limit are refused', () => {
  const strings = new SharedStrings({ textsMax: 4_000 })
  for (let i = 0; i < 4_000; i += 1) strings.add('')
  expect(strings.get(3_999)).toBe('')
  expect(() => strings.add('')).toThrow(/more than 4,000 different texts.*Save the sheet as CSV/)
})
