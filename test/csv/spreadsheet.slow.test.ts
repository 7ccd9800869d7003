import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createRowWriter } from '../../src/csv/csv.ts'
import { dialectOf } from '../support/csv.ts'
import { tempFolder } from '../support/database.ts'
import { convert, EVALUATE, formulasOf, hasOffice } from '../support/spreadsheet.ts'

// Opens the output of the writer in an independent spreadsheet program, headless LibreOffice.

const CELLS = [
  ...['=1+1', '+1+1', '-1+1', "=cmd|'/C calc'!A0", '@SUM(1;1)', '=HYPERLINK("http://a.test")'],
  ...["=cmd|'/C'!A0@one.test", '+1@one.test', '-x@one.test', '\t=1+1', '\0=1+1', '＝1+1'],
]

/** Returns the formulas that the spreadsheet program finds in a file. */
function formulasIn(rows: readonly string[]): string[] {
  const folder = tempFolder()
  writeFileSync(join(folder, 'list.csv'), rows.join(''))
  return formulasOf(readFileSync(convert(folder, 'list.csv', 'fods', EVALUATE), 'utf8'))
}

const written = (raw: boolean) => {
  const writer = createRowWriter(dialectOf('name,email\nA,a@one.test\n'), ['ev_text'], { raw })
  return [
    writer.header(),
    ...writer.rows(CELLS.map(cell => ({ cells: [cell, cell], values: [cell] }))),
  ]
}

test.skipIf(!hasOffice)(
  'LibreOffice runs no cell of a guarded list, and some of a raw list',
  () => {
    expect(formulasIn(written(true))).not.toEqual([])
    expect(formulasIn(written(false))).toEqual([])
  },
)
