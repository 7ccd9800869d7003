import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { Value } from '../../src/csv/csv.ts'
import { createSheetWriter } from '../../src/formats/sheet-writer.ts'
import { zipSheet } from '../../src/formats/sheet-zip.ts'
import { dialectOf } from '../support/csv.ts'
import { readWorkbook } from '../support/workbook.ts'

const writerOf = (header: string, added: readonly string[] = []) =>
  createSheetWriter(dialectOf(`${header}\n`), added)

/** Returns the XML of the cells of a row. */
const cellsOf = (cells: readonly string[], values: readonly Value[] = []) =>
  writerOf(cells.map((_, i) => (i === 0 ? 'email' : `c${i}`)).join(','))
    .rows([{ cells, values }])
    .join('')
    .replace(/^<row r="1">|<\/row>$/g, '')

const text = (xml: string) => /<t xml:space="preserve">(.*)<\/t>/s.exec(xml)?.[1]

test('a workbook has the header, the original columns and the added ones', async () => {
  const writer = writerOf('name,email', ['ev_valid', 'ev_confidence', 'ev_code'])
  const begin = writer.header()
  const rows = writer.rows([
    { cells: ['Änn & <Co>', 'ann@a.test'], values: [true, 0.97, null] },
    { cells: ['x'], values: [] },
  ])
  const sheet = Readable.from([begin, ...rows, writer.end])
  expect(await readWorkbook(await buffer(zipSheet(sheet)))).toEqual({
    sheets: ['Results'],
    rows: [
      ['name', 'email', 'ev_valid', 'ev_confidence', 'ev_code'],
      ['Änn & <Co>', 'ann@a.test', 'TRUE', '0.97'],
      ['x'],
    ],
  })
})

test('an error of the rows is thrown to the reader, also before its first read', async () => {
  const rows = Readable.from([])
  const output = zipSheet(rows)
  rows.destroy(new Error('the rows changed'))
  await setImmediate()
  await expect(buffer(output)).rejects.toThrow('the rows changed')
})

test.each(['=1+1', '+1+1', '-1+1', '@SUM(1;1)', "=cmd|'/C calc'!A0", '\t=1+1', '＝1+1'])(
  'a cell that could be a formula is text with the text format: %j',
  cell => {
    expect(cellsOf([cell])).toMatch(/^<c r="A1" s="1" t="inlineStr"><is>/)
    expect(cellsOf([''], [cell])).toMatch(/^<c r="B1" s="1" t="inlineStr"><is>/)
  },
)

test.each(['0', '7', '-3', '12.5', '123456789012345'])('a cell of a list is a number: %s', cell => {
  expect(cellsOf([cell])).toBe(`<c r="A1"><v>${cell}</v></c>`)
})

test.each(['007', '1.50', '1e5', '+49', '-0', '1,5', ' 1', '1234567890123456', '٣', ''])(
  'a cell that a number would change stays text: %j',
  cell => {
    expect(cellsOf([cell])).not.toContain('<v>')
    expect(text(cellsOf([cell])) ?? '').toBe(cell)
  },
)

test('values are booleans, numbers and text; text of digits stays text', () => {
  expect(cellsOf(['a'], [true, 250, null, '250'])).toBe(
    '<c r="A1" t="inlineStr"><is><t xml:space="preserve">a</t></is></c>' +
      '<c r="B1" t="b"><v>1</v></c><c r="C1"><v>250</v></c>' +
      '<c r="E1" t="inlineStr"><is><t xml:space="preserve">250</t></is></c>',
  )
})

test('characters that XML cannot contain are escaped, and lone surrogates replaced', () => {
  expect(text(cellsOf(['a\0b\x1fc\r\n\uffff']))).toBe('a_x0000_b_x001F_c_x000D_\n_xFFFF_')
  expect(text(cellsOf(['_x0041_ _x']))).toBe('_x005F_x0041_ _x')
  expect(text(cellsOf(['\ud800']))).toBe('\ufffd')
})

test('a cell longer than a worksheet allows is truncated', () => {
  expect(text(cellsOf(['x'.repeat(40_000)]))).toHaveLength(32_767)
})

test('columns are named A to Z, then AA', () => {
  const row = cellsOf(Array.from({ length: 703 }, () => 'x'))
  expect(
    [...row.matchAll(/r="([A-Z]+)1"/g)]
      .map(([, name]) => name)
      .filter((_, i) => [25, 26, 51, 52, 701, 702].includes(i)),
  ).toEqual(['Z', 'AA', 'AZ', 'BA', 'ZZ', 'AAA'])
})

test('more columns than a worksheet has are refused', () => {
  const dialect = { ...dialectOf('email\n'), header: null, width: 16_384 }
  expect(() => createSheetWriter(dialect, ['ev_valid']).header()).toThrow(
    'The results have 16,385 columns, but a worksheet has at most 16,384. Use CSV.',
  )
})
