import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { emptyFolder, runEv } from '../../support/cli.ts'
import { rowsIn } from '../../support/csv.ts'
import { textRow, workbookOf } from '../../support/workbook.ts'

/** Rows of a list; five of them have no address, one of which is blank. */
const ROWS = [
  ['name', 'email'],
  ['Ann', 'valid.ann@x.example'],
  ['Bob', ''],
  ['', ''],
  ['Cy', 'n/a'],
  ['Dan', '(empty)'],
  ['Eve', 'N/A'],
  ['Fox', 'no address at all'],
]

async function bulk(name: string, content: string | Uint8Array, args: readonly string[] = []) {
  const home = emptyFolder()
  writeFileSync(join(home, name), content)
  const ran = await runEv(['bulk', name, '-o', 'out.csv', '--sandbox', '--json', ...args], {
    home,
    offline: true,
  })
  expect(ran.code, ran.stderr).toBe(0)
  return { ...ran, summary: JSON.parse(ran.stdout), rows: rowsIn(join(home, 'out.csv')) }
}

test('rows without an address are counted on their own, the same in CSV and in a workbook', async () => {
  const csv = await bulk('list.csv', ROWS.map(row => `${row.join(',')}\n`).join(''))
  const sheet = ROWS.map(row => textRow(...row)).join('')
  const workbook = await bulk('list.xlsx', await workbookOf({ sheet }))
  for (const { summary, rows, stderr } of [csv, workbook]) {
    expect(summary).toMatchObject({
      total: 7,
      deliverable: 1,
      undeliverable: 1,
      unknown: 5,
      no_address: 5,
      duplicates: 0,
    })
    expect(stderr).toMatch(/unknown +5 .*\n +no_address +5 /)
    expect(rows.map(row => [row.name, row.ev_class, row.ev_reason])).toEqual([
      ['Ann', 'deliverable', 'accepted_email'],
      ...['Bob', '', 'Cy', 'Dan', 'Eve'].map(name => [name, 'unknown', 'no_address']),
      ['Fox', 'undeliverable', 'invalid_email'],
    ])
  }
})

test('--deduplicate keeps each row without an address', async () => {
  const list = 'name,email\nAnn,valid.ann@x.example\nBob,\nCy,\nDan,valid.ann@x.example\n'
  const { rows } = await bulk('list.csv', list, ['--deduplicate'])
  expect(rows.map(({ name }) => name)).toEqual(['Ann', 'Bob', 'Cy'])
})
