import { describe, expect, test } from 'vitest'
import {
  createRowWriter,
  type OutputRow,
  type RowWriter,
  readList,
  type Value,
} from '../../src/csv/csv.ts'
import { dialectOf } from '../support/csv.ts'
import { fc, runs } from '../support/property.ts'

const LIST = 'name,email\nAnn,a@one.test\n'

const lineOf = (writer: RowWriter, cells: readonly string[], values: readonly Value[]) =>
  writer.rows([{ cells, values }])[0]

describe('the lines of a result', () => {
  test('keep delimiter, line break and byte order mark of the list', () => {
    const writer = createRowWriter(dialectOf('\uFEFFname;email\r\nAnn;a@one.test\r\n'), [
      'ev_class',
    ])
    expect(writer.header()).toBe('\uFEFFname;email;ev_class\r\n')
    expect(lineOf(writer, ['Ann', 'a@one.test'], ['risky'])).toBe('Ann;a@one.test;risky\r\n')
  })

  test('quote only cells that must be quoted', () => {
    const writer = createRowWriter(dialectOf(LIST), ['ev_smtp_text'])
    const row = lineOf(writer, ['a "b", c', 'x\ny'], ['550 5.1.1 no; none'])
    expect(row).toBe('"a ""b"", c","x\ny",550 5.1.1 no; none\n')
  })

  test('pad short rows, so that added columns align with their names', () => {
    const writer = createRowWriter(dialectOf(LIST), ['ev_valid'])
    expect(lineOf(writer, ['Ann'], [false])).toBe('Ann,,false\n')
  })

  test('are the same for a row that lacks many columns as for its cells and empty ones', () => {
    const header = Array.from({ length: 100 }, (_, i) => `c${i}`)
    const writer = createRowWriter(dialectOf(`email,${header.join(',')}\na@one.test\n`), ['ev_a'])
    for (const cells of [['a@one.test'], ['=a', 'b,"c'], [''], ['a', ''], []]) {
      const padded = [...cells, ...Array(101 - cells.length).fill('')]
      expect(lineOf(writer, cells, ['=x'])).toBe(lineOf(writer, padded, ['=x']))
    }
  })

  test('put extra cells of a row last', () => {
    const writer = createRowWriter(dialectOf(LIST), ['ev_valid'])
    expect(lineOf(writer, ['Ann', 'a@one.test', 'x', 'y'], [true])).toBe(
      'Ann,a@one.test,true,x,y\n',
    )
  })

  test('widen the header if rows of the sample are wider', () => {
    const writer = createRowWriter(dialectOf('email,name\na@one.test,A,x\n'), ['ev_valid'])
    expect(writer.header()).toBe('email,name,,ev_valid\n')
    expect(lineOf(writer, ['a@one.test', 'A', 'x'], [true])).toBe('a@one.test,A,x,true\n')
  })

  test('write nothing for null, and numbers and booleans as they are', () => {
    const writer = createRowWriter(dialectOf('a@one.test\n'), ['a', 'b', 'c', 'd'])
    expect(lineOf(writer, ['a@one.test'], [null, -1, true, ''])).toBe('a@one.test,,-1,true,\n')
  })

  test('write words and times of ev as they are, and quote the texts beside them', () => {
    const words = new Set(['ev_reason', 'ev_checked_at'])
    const added = ['ev_reason', 'ev_checked_at', 'ev_smtp_text']
    const writer = createRowWriter(dialectOf(LIST), added, { words })
    const time = '2026-03-22T10:30:00.000Z'
    expect(lineOf(writer, ['Ann', 'a@one.test'], ['accepted_email', time, 'ok, "yes"'])).toBe(
      `Ann,a@one.test,accepted_email,${time},"ok, ""yes"""\n`,
    )
    // A word is not looked at; a text is, for formulas and for what must be quoted.
    expect(lineOf(writer, ['Ann', ''], ['=1', null, '=1'])).toBe("Ann,,=1,,'=1\n")
  })

  test('are the same in a batch as one at a time, also where rows repeat texts', () => {
    const added = ['ev_email', 'ev_reason', 'ev_smtp_text', 'ev_smtp_code']
    const writer = createRowWriter(dialectOf(LIST), added, { words: new Set(['ev_reason']) })
    const rows: OutputRow[] = [
      { cells: ['Ann', '=a@one.test'], values: ['=a@one.test', 'rejected_email', 'no, "x"', 550] },
      { cells: [], values: [null, null, null, null] },
      { cells: ['B\nob'], values: ['b@one.test', 'rejected_email', 'no, "x"', 550] },
      { cells: ['C', 'c', 'no, "x"', ''], values: ['', 'accepted_email', '\ufeff', null] },
      { cells: ['\0', 'd'], values: ['d', 'accepted_email', '\0', -1] },
    ]
    expect(writer.rows(rows)).toEqual(rows.flatMap(row => writer.rows([row])))
  })

  test('name the columns of a list without a header', () => {
    const writer = createRowWriter(dialectOf('Ann,a@one.test\nBob,b@two.test\n'), ['ev_class'])
    expect(writer.header()).toBe('column_1,email,ev_class\n')
  })
})

describe('the formula guard', () => {
  const guarded = createRowWriter(dialectOf(LIST), ['ev_email', 'ev_smtp_text'])
  const raw = createRowWriter(dialectOf(LIST), ['ev_email', 'ev_smtp_text'], { raw: true })

  const RUN = [
    ...["=cmd|'/C calc'!A0", '+1+1', '-1+1', '+1-555-0100', '@x', '\tx', '＝1', '- none'],
    ...[' =1', '\u00a0=1', '\v=1', '\f=1', ' \u200b+1+1', '\u2028@x', '\u001f=1'],
    ...["=cmd|'/C'!A0@one.test", '+1@one.test', '-x@one.test', '@SUM(1)@one.test'],
  ]

  test.each(RUN)('puts a quote before %j, in cells of the list and in added ones', text => {
    expect(lineOf(guarded, [text, 'b'], [text, text])).toBe(`'${text},b,'${text},'${text}\n`)
    expect(lineOf(raw, [text, 'b'], [text, text])).toBe(`${text},b,${text},${text}\n`)
  })

  test.each(['+1', '-1', '+49 170 1234567', '-1,234.5', '-', '--', ' -1', 'a=1', "'=1", ' a'])(
    'leaves %j unchanged',
    text => {
      const { delimiter } = dialectOf(LIST)
      const quoted = text.includes(delimiter) ? `"${text}"` : text
      expect(lineOf(guarded, [text, 'b'], [text, null])).toBe(`${quoted},b,${quoted},\n`)
    },
  )

  test('puts a quote before a byte order mark that precedes a formula', () => {
    expect(lineOf(guarded, ['\ufeff=1', 'b'], [null, null])).toBe("'\ufeff=1,b,,\n")
  })

  test('works within quotes', () => {
    expect(lineOf(guarded, ['A', 'b'], [null, '\r=1'])).toBe(`A,b,,"'\r=1"\n`)
  })

  test('applies to column names', () => {
    expect(createRowWriter(dialectOf('=1+1,email\nA,a@one.test\n'), []).header()).toBe(
      "'=1+1,email\n",
    )
  })

  test('removes NUL even without the guard', () => {
    expect(lineOf(guarded, ['\0=1', 'a\0b'], [null, '\0'])).toBe("'=1,ab,,\n")
    expect(lineOf(raw, ['\0=1', 'a\0b'], [null, '\0'])).toBe('=1,ab,,\n')
  })
})

test('reads back written rows cell by cell', async () => {
  const text = fc.string({ unit: fc.constantFrom('a', '"', ',', '\n', '\r', ' ', 'ß', '=', '@') })
  const rows = fc.array(fc.tuple(text, text, text), { minLength: 1, maxLength: 20 })
  await fc.assert(
    fc.asyncProperty(rows, fc.constantFrom('\n', '\r\n', '\r'), async (table, newline) => {
      const dialect = { ...dialectOf('n,m,email\nx,y,a@one.test\n'), newline }
      const writer = createRowWriter(dialect, ['ev_a'], { raw: true })
      const output =
        writer.header() + writer.rows(table.map(cells => ({ cells, values: ['x'] }))).join('')
      const back = []
      const source = (async function* () {
        yield Buffer.from(output)
      })()
      for await (const batch of readList(source, dialect)) back.push(...batch)
      expect(back.map(row => row.cells)).toEqual(table.map(row => [...row, 'x']))
    }),
    { numRuns: runs(300) },
  )
})
