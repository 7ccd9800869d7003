import { describe, expect, test } from 'vitest'
import { isPlaceholder } from '../../../src/engine/address/placeholder.ts'

describe('a text that stands for a missing address', () => {
  test.each([
    ...['', ' ', '\u00a0', '-', '--', '–', '...', '?', '""', 'n/a', 'N/A', 'N.A.', '#N/A', 'na'],
    ...['none', 'None', 'NULL', '<null>', '[none]', '(empty)', '(blank)', 'nan', 'NaN', '\\N'],
    ...['undefined', 'Unknown', 'not available', 'no_email', 'keine Angabe', 'k.A.', 'aucun'],
    ...['нет', 'なし', '无', '#REF!'],
  ])('is %j', text => {
    expect(isPlaceholder(text)).toBe(true)
  })

  test.each([
    ...['@', 'ann', 'ann@', 'ann@mail.example', 'none@mail.example', 'n/a@mail.example', 'name'],
    ...['no address', 'ask Ann', 'nobody', 'anna', 'nullmail', '1', 'null.example'],
  ])('is not %j', text => {
    expect(isPlaceholder(text)).toBe(false)
  })

  test('is found in linear time', () => {
    expect(isPlaceholder('-'.repeat(1_000_000))).toBe(false)
  })
})
