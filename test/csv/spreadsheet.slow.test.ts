import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createRowWriter } from '../../src/csv/csv.ts'
import { dialectOf } from '../support/csv.ts'

// Opens the output of the writer in an independent spreadsheet program, headless LibreOffice.

const REQUIRED = process.env.EV_REAL_SERVERS === 'required'
const OFFICE = 'soffice'
const isMissing = spawnSync(OFFICE, ['--version']).error !== undefined

if (isMissing && REQUIRED) throw new Error('soffice (libreoffice-calc-nogui) is missing')
if (isMissing)
  console.warn('No test in a spreadsheet: soffice (libreoffice-calc-nogui) is missing.')

const CELLS = [
  ...['=1+1', '+1+1', '-1+1', "=cmd|'/C calc'!A0", '@SUM(1;1)', '=HYPERLINK("http://a.test")'],
  ...["=cmd|'/C'!A0@one.test", '+1@one.test', '-x@one.test', '\t=1+1', '\0=1+1', '＝1+1'],
]

/** Returns the formulas that the spreadsheet program finds in a file. */
function formulasIn(rows: readonly string[]): string[] {
  const dir = mkdtempSync(join(tmpdir(), 'ev-office-'))
  const file = join(dir, 'list.csv')
  writeFileSync(file, rows.join(''))
  const profile = `-env:UserInstallation=file://${dir}/profile`
  // Field separator, text delimiter, UTF-8, first line, and evaluate formulas.
  const filter = '--infilter=CSV:44,34,76,1,,0,false,true,false,false,false,-1,true'
  const args = [profile, '--headless', filter, '--convert-to', 'fods', '--outdir', dir, file]
  const { status, stderr } = spawnSync(OFFICE, args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(stderr)
  const text = readFileSync(join(dir, 'list.fods'), 'utf8')
  return [...text.matchAll(/table:formula="([^"]*)"/g)].map(([, formula]) => formula ?? '')
}

const written = (raw: boolean) => {
  const writer = createRowWriter(dialectOf('name,email\nA,a@one.test\n'), ['ev_text'], { raw })
  return [writer.header(), ...CELLS.map(cell => writer.row([cell, cell], [cell]))]
}

test.skipIf(isMissing)('LibreOffice runs no cell of a guarded list, and some of a raw list', () => {
  expect(formulasIn(written(true))).not.toEqual([])
  expect(formulasIn(written(false))).toEqual([])
})
