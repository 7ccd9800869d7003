import { expect, test } from 'vitest'
import { SharedStrings } from '../../src/formats/shared-strings.ts'

test('a workbook has at most four million different texts', () => {
  const strings = new SharedStrings()
  for (let i = 0; i < 4_000_000; i += 1) strings.add('')
  expect(strings.get(3_999_999)).toBe('')
  expect(() => strings.add('')).toThrow(
    /more than 4,000,000 different texts.*Save the sheet as CSV/,
  )
})
