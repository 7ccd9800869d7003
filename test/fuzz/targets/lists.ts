import { deepEqual, fail, ok } from 'node:assert/strict'
import {
  createRowObject,
  createRowWriter,
  detectColumns,
  type ListDialect,
  type ListRow,
  readList,
} from '../../../src/csv/csv.ts'
import { RecordReader } from '../../../src/csv/record.ts'
import { EvError } from '../../../src/platform/error.ts'
import { type FuzzTarget, readFixture, splitBytes, toStream } from '../target.ts'

/**
 * A list is refused with a sentence, or its rows are the same in any chunking, and what is written
 * of them is read as the same cells.
 */
export const target: FuzzTarget = {
  async fuzz(bytes) {
    const dialect = detect(bytes)
    if (dialect === null) return
    ok(dialect.column >= 0 && dialect.column < dialect.width)
    const rows = await read([bytes], dialect)
    deepEqual(await read(splitBytes(bytes), dialect), rows)
    if (rows === null) return
    const toObject = createRowObject(dialect)
    for (const { cells } of rows) JSON.parse(toObject(cells))
    checkRoundTrip(rows, dialect)
  },
  *seeds() {
    for (const name of ['utf-8', 'windows-1252', 'utf-16le', 'utf-16be', 'shift_jis', 'gb18030']) {
      yield readFixture(`csv/${name}.csv`).subarray(0, 400)
    }
    yield 'sep=;\r\nName;E-Mail\r\n"Ann; A";ann@mail.example\r\n;\r\nBob;bob@mail.example\r\n'
    yield '\ufeffemail|note\nann@mail.example|"a\nb"\n'
    yield 'Ann <ann@mail.example>, bob@mail.example; "C, D" <cd@mail.example>\n'
    yield '["ann@mail.example",\n"bob@mail.example"]'
    yield '"email,name"\n"ann@mail.example,""A, B"""\n'
    yield 'a@mail.example,b@mail.example\n,c@mail.example d@mail.example\n'
  },
  lengthMax: 2_048,
}

function detect(bytes: Buffer): ListDialect | null {
  try {
    return detectColumns(bytes).dialect
  } catch (error) {
    return refuse(error)
  }
}

async function read(chunks: readonly Buffer[], dialect: ListDialect): Promise<ListRow[] | null> {
  const rows: ListRow[] = []
  try {
    for await (const batch of readList(toStream(chunks), dialect)) rows.push(...batch)
    return rows
  } catch (error) {
    return refuse(error)
  }
}

function refuse(error: unknown): null {
  if (!(error instanceof EvError) || error.code !== 'bad_input') fail(`not bad_input: ${error}`)
  return null
}

/** NUL is removed from what is written; the added column makes no line a blank one. */
function checkRoundTrip(rows: readonly ListRow[], dialect: ListDialect): void {
  const { delimiter, width } = dialect
  const written = createRowWriter(dialect, ['added'], { raw: true }).rows(
    rows.map(({ cells }) => ({ cells, values: ['x'] })),
  )
  const reader = new RecordReader({ delimiter })
  const records = reader.push(written.join(''), true)
  const expected = rows.map(({ cells }) => {
    const all = cells.map(cell => cell.replaceAll('\0', ''))
    while (all.length < width) all.push('')
    return all.toSpliced(width, 0, 'x')
  })
  deepEqual(
    records.map(({ cells }) => cells),
    expected,
  )
}
