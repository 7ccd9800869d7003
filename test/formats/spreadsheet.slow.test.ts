import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { createSheetWriter } from '../../src/formats/sheet-writer.ts'
import { zipSheet } from '../../src/formats/sheet-zip.ts'
import { dialectOf } from '../support/csv.ts'
import { tempFolder } from '../support/database.ts'
import { createUploadService } from '../support/list-form.ts'
import { convert, EVALUATE, formulasOf, hasOffice } from '../support/spreadsheet.ts'

// Opens written workbooks in headless LibreOffice, and reads workbooks that it has written.

const CELLS = [
  ...['=1+1', '+1+1', '-1+1', "=cmd|'/C calc'!A0", '@SUM(1;1)', '=HYPERLINK("http://a.test")'],
  ...['\t=1+1', '＝1+1', '007', '12.5', 'a\nb', ' x ', '<&">', 'Ünï', '_x0041_'],
]

test.skipIf(!hasOffice)('LibreOffice finds the types of cells, and no formula', async () => {
  const folder = tempFolder()
  const writer = createSheetWriter(dialectOf('name,email\n'), ['ev_confidence', 'ev_valid'])
  const begin = writer.header()
  const rows = writer.rows(CELLS.map(cell => ({ cells: [cell, 'a@one.test'], values: [97, true] })))
  const sheet = Readable.from([begin, ...rows, writer.end])
  writeFileSync(join(folder, 'out.xlsx'), await buffer(zipSheet(sheet)))
  const text = readFileSync(convert(folder, 'out.xlsx', 'fods'), 'utf8')
  // LibreOffice shows a boolean cell of another program as the number of this formula.
  expect(formulasOf(text)).toEqual(CELLS.map(() => 'of:=TRUE()'))
  const types = [...text.matchAll(/office:value-type="(\w+)"/g)].map(([, type]) => type)
  const count = (type: string) => types.filter(one => one === type).length
  // Four names, then for each row the address, and the name unless it is a number.
  expect(count('string')).toBe(4 + 2 * CELLS.length - 1)
  expect(count('float')).toBe(2 * CELLS.length + 1)
  const csv = readFileSync(convert(folder, 'out.xlsx', 'csv'), 'utf8')
  expect(csv).toMatch(/^name,email,ev_confidence,ev_valid\n=1\+1,a@one\.test,97,TRUE\n/)
  expect(csv).toContain('\n007,a@one.test,97,TRUE\n12.5,a@one.test')
})

test.skipIf(!hasOffice)('a workbook of LibreOffice has the cells that it was made of', async () => {
  const folder = tempFolder()
  writeFileSync(join(folder, 'list.csv'), 'email,born,sum\nann@a.test,1990-02-03,=1+2\n')
  const path = convert(folder, 'list.csv', 'xlsx', EVALUATE)
  const { upload } = await createUploadService()
  const preview = async (file: string) =>
    (await upload(readFileSync(file), { dry_run: 'true' })).json()
  expect(await preview(path)).toMatchObject({
    sheet: 'list',
    sheets: ['list'],
    columns: [{ name: 'email' }, { name: 'born' }, { name: 'sum' }],
    preview: [['ann@a.test', '1990-02-03', '3']],
  })
  for (const [format, error] of [
    ['ods', /OpenDocument/],
    ['xls', /old Excel workbook/],
  ] as const) {
    const refused = await preview(convert(folder, 'list.csv', format))
    expect(refused).toMatchObject({ success: false, error: expect.stringMatching(error) })
  }
})
