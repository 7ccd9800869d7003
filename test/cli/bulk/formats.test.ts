import { existsSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { emptyFolder, folderWith, runEv } from '../../support/cli.ts'
import { objectsOf, rowsOf } from '../../support/csv.ts'
import { readWorkbook, textRow, workbookOf, zipOf } from '../../support/workbook.ts'

const CSV = 'id,email\n7,valid1@x.example\n007,invalid2@x.example\n=1+1,risky3@x.example\n'

/** Runs `ev bulk` in the sandbox, in the folder `home`. */
const bulk = (home: string, args: readonly string[], stdin?: Uint8Array) =>
  runEv(['bulk', ...args, '--sandbox', '--data-dir', 'data'], {
    home,
    offline: true,
    ...(stdin === undefined ? {} : { stdin }),
  })

/** Returns the rows of a workbook as objects. */
const rowsOfWorkbook = async (path: string) =>
  objectsOf((await readWorkbook(readFileSync(path))).rows)

const classes = (rows: readonly Readonly<Record<string, string>>[]) =>
  rows.map(({ id, ev_class }) => [id, ev_class])

const EXPECTED = [
  ['7', 'deliverable'],
  ['007', 'undeliverable'],
  ['=1+1', 'risky'],
]

const sheetOf = (csv: string) =>
  csv
    .trim()
    .split('\n')
    .map(line => textRow(...line.split(',')))
    .join('')

describe.concurrent('the format of a list', () => {
  test('a workbook gives a workbook, with the rows of its first sheet', async () => {
    const home = folderWith({ 'list.xlsx': await workbookOf({ sheet: sheetOf(CSV) }) })
    const { code, stderr } = await bulk(home, ['list.xlsx'])
    expect(code, stderr).toBe(0)
    expect(stderr).toContain('3 rows of sheet Customers, addresses in column email.')
    expect(classes(await rowsOfWorkbook(join(home, 'list.verified.xlsx')))).toEqual(EXPECTED)
  })

  test('--sheet selects a sheet, which is a list of its own', async () => {
    const sheets = { A: sheetOf(CSV), B: sheetOf('id,email\n1,valid1@x.example\n') }
    const home = folderWith({ 'list.xlsx': await workbookOf({ sheets }) })
    symlinkSync('/dev/full', join(home, 'out.csv'))
    if (existsSync('/dev/full'))
      expect((await bulk(home, ['list.xlsx', '-o', 'out.csv'])).code).toBe(73)
    rmSync(join(home, 'out.csv'), { force: true })
    const other = await bulk(home, ['list.xlsx', '-o', 'out.csv', '--sheet', 'b'])
    expect(other.stderr).toContain('1 row of sheet B')
    expect(classes(rowsOf(readFileSync(join(home, 'out.csv'), 'utf8')))).toEqual([
      ['1', 'deliverable'],
    ])
  })

  test.each<[string, string, () => Promise<Uint8Array>]>([
    ['list.csv.gz', 'list.verified.csv.gz', async () => gzipSync(CSV)],
    // The content decides, not the name.
    ['list.csv', 'list.verified.csv', async () => gzipSync(CSV)],
    ['list.zip', 'list.verified.csv', () => zipOf({ 'a/list.csv': CSV })],
  ])('%s gives %s', async (name, output, content) => {
    const home = folderWith({ [name]: await content() })
    const { code, stderr } = await bulk(home, [name])
    expect(code, stderr).toBe(0)
    const bytes = readFileSync(join(home, output))
    const text = (output.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString()
    // CSV guards cells that a spreadsheet would run.
    expect(classes(rowsOf(text))).toEqual([...EXPECTED.slice(0, 2), ["'=1+1", 'risky']])
  })

  test('stdin can be a workbook or compressed, and stdout a workbook', async () => {
    const home = emptyFolder()
    const workbook = await workbookOf({ sheet: sheetOf(CSV) })
    const written = await bulk(home, ['-', '-o', 'out.xlsx'], workbook)
    expect(written.code, written.stderr).toBe(0)
    expect(classes(await rowsOfWorkbook(join(home, 'out.xlsx')))).toEqual(EXPECTED)
    expect(rowsOf((await bulk(home, ['-', '-o', '-'], gzipSync(CSV))).stdout)).toHaveLength(3)
    expect((await bulk(home, ['-', '-o', '-', '--format', 'xlsx'], gzipSync(CSV))).stdout).toMatch(
      /^PK/,
    )
    expect(readdirSync(join(home, 'data/stdin'))).toEqual([])
  })

  test('--split writes a workbook or a compressed file for each class', async () => {
    const home = folderWith({ 'list.csv': CSV })
    await bulk(home, ['list.csv', '-o', 'out.xlsx', '--split'])
    expect(classes(await rowsOfWorkbook(join(home, 'out.risky.xlsx')))).toEqual([['=1+1', 'risky']])
    await bulk(home, ['list.csv', '-o', 'out.ndjson.gz', '--format', 'ndjson', '--split'])
    const lines = gunzipSync(readFileSync(join(home, 'out.risky.ndjson.gz'))).toString()
    expect(JSON.parse(lines)).toMatchObject({ row: 3, result: { class: 'risky' } })
    expect(gunzipSync(readFileSync(join(home, 'out.unknown.ndjson.gz')))).toHaveLength(0)
  })

  test.runIf(existsSync('/dev/full'))(
    'a workbook that cannot be written keeps the results: the same command writes it',
    async () => {
      const home = folderWith({ 'list.xlsx': await workbookOf({ sheet: sheetOf(CSV) }) })
      symlinkSync('/dev/full', join(home, 'out.xlsx'))
      const failed = await bulk(home, ['list.xlsx', '-o', 'out.xlsx'])
      expect([failed.code, failed.stderr]).toEqual([73, expect.stringContaining('no space left')])
      rmSync(join(home, 'out.xlsx'))
      const { code, stderr } = await bulk(home, ['list.xlsx', '-o', 'out.xlsx'])
      expect(code, stderr).toBe(0)
      expect(stderr).toContain('Resuming this list: 3 of 3 rows are finished.')
      expect(classes(await rowsOfWorkbook(join(home, 'out.xlsx')))).toEqual(EXPECTED)
      expect(readdirSync(home).filter(name => name.endsWith('.partial'))).toEqual([])
    },
  )
})
