import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { emptyFolder, runEv } from '../../support/cli.ts'
import { rowsIn } from '../../support/csv.ts'
import { textRow, workbookOf } from '../../support/workbook.ts'

const [A, B, C] = ['valid.ann@x.example', 'invalid.bob@x.example', 'valid.cy@x.example']

/** Runs `ev bulk` on a list in the sandbox; returns its output and messages. */
async function bulk(list: string, args: readonly string[] = []) {
  const home = emptyFolder()
  writeFileSync(join(home, 'list.csv'), list)
  const ran = await runEv(['bulk', 'list.csv', '--sandbox', '-o', 'out.csv', ...args], {
    home,
    offline: true,
  })
  expect(ran.code, ran.stderr).toBe(0)
  return { ...ran, output: rowsIn(join(home, 'out.csv'), list.includes(';') ? ';' : ',') }
}

const BOOK = `id,Email,Points,Manager\n1,${A},7,${C}\n2,${B},8,\n`

describe('ev bulk of a list with several addresses per row', () => {
  test.each([
    ['commas', `${A}, ${B}, ${C}`],
    ['names', `Ann <${A}>; Bob <${B}>; Cy <${C}>\n`],
    ['rows of different length', `${A},${B}\n${C}\n`],
    ['a JSON array', JSON.stringify([A, B, C])],
  ])('verifies all of them if it has no header: %s', async (_, list) => {
    const { output, stderr } = await bulk(list)
    expect(stderr).toContain('3 rows, one for each address.')
    expect(output.map(row => [row.ev_email, row.ev_class])).toEqual([
      [A, 'deliverable'],
      [B, 'undeliverable'],
      [C, 'deliverable'],
    ])
  })

  test('verifies all of them in a workbook without a header', async () => {
    const home = emptyFolder()
    const sheet = [textRow(A, B), textRow(C)].join('')
    writeFileSync(join(home, 'list.xlsx'), await workbookOf({ sheet }))
    const args = ['bulk', 'list.xlsx', '--sandbox', '-o', 'out.csv']
    const { stderr } = await runEv(args, { home, offline: true })
    expect(stderr).toContain('3 rows of sheet Customers, one for each address.')
    expect(rowsIn(join(home, 'out.csv')).map(row => row.ev_email)).toEqual([A, B, C])
  })

  test('names the columns that it does not verify', async () => {
    const { output, stderr } = await bulk(BOOK)
    expect(stderr).toContain(
      'note: Not verified: column 4 (Manager), which also holds addresses. To verify every address',
    )
    expect(output.map(row => row.ev_email)).toEqual([A, B])
  })

  test('--all-addresses verifies each as a separate row, with all cells of its row', async () => {
    const { output, stderr } = await bulk(BOOK, ['--all-addresses'])
    expect(stderr).toContain('3 rows, one for each address in columns 2 (Email) and 4 (Manager).')
    expect(stderr).not.toContain('Not verified')
    expect(output.map(row => [row.id, row.Points, row.ev_email, row.ev_class])).toEqual([
      ['1', '7', A, 'deliverable'],
      ['1', '7', C, 'deliverable'],
      ['2', '8', B, 'undeliverable'],
    ])
  })

  test('ends a cell with two addresses as invalid, and suggests none made of both', async () => {
    const list = `id,email\n1,"two@a.com, three@b.com"\n2,${A}\n`
    const { output, stderr } = await bulk(list)
    expect(stderr).toContain('Cells with several addresses get the reason invalid_email.')
    expect(output[0]).toMatchObject({
      ev_email: 'two@a.com, three@b.com',
      ev_reason: 'invalid_email',
      ev_did_you_mean: '',
    })
    const all = await bulk(list, ['--all-addresses'])
    expect(all.output.map(row => [row.id, row.ev_email])).toEqual([
      ['1', 'two@a.com'],
      ['1', 'three@b.com'],
      ['2', A],
    ])
  })

  test('--no-all-addresses and --column verify one per row', async () => {
    expect((await bulk(`${A},${B}\n`, ['--no-all-addresses'])).output).toHaveLength(1)
    const { output } = await bulk(`${A},${B}\n`, ['--column', '2'])
    expect(output.map(row => row.ev_email)).toEqual([B])
  })

  test('numbers rows as in the list', async () => {
    const home = emptyFolder()
    writeFileSync(join(home, 'list.csv'), `${A},${B}\n${C}\n`)
    const args = ['bulk', 'list.csv', '--sandbox', '-o', '-', '--format', 'ndjson']
    const { stdout } = await runEv(args, { home, offline: true })
    const rows = stdout
      .trim()
      .split('\n')
      .map(line => JSON.parse(line))
    expect(rows.map(({ row, result }) => [row, result.email])).toEqual([
      [1, A],
      [1, B],
      [2, C],
    ])
  })
})
