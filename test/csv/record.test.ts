import { parse } from 'csv-parse/sync'
import { stringify } from 'csv-stringify/sync'
import { describe, expect, test } from 'vitest'
import { RecordReader } from '../../src/csv/record.ts'
import { CELL_LINE_BREAKS_MAX, RECORD_LENGTH_MAX } from '../../src/csv/record-splitter.ts'
import { fc, runs } from '../support/property.ts'

function read(text: string, options: { delimiter?: string; chunks?: readonly number[] } = {}) {
  const reader = new RecordReader({ delimiter: options.delimiter ?? ',' })
  const records = []
  let at = 0
  for (const length of options.chunks ?? []) {
    records.push(...reader.push(text.slice(at, at + length)))
    at += length
  }
  return [...records, ...reader.push(text.slice(at), true)]
}

const cells = (text: string, delimiter?: string) =>
  read(text, delimiter ? { delimiter } : {}).map(record => record.cells)

/** The maximum number of line breaks in a cell. */
const LINES = '\r\n'.repeat(CELL_LINE_BREAKS_MAX)

describe('a quoted cell', () => {
  test.each([
    ['holds delimiters', 'a,"b,c",d', [['a', 'b,c', 'd']]],
    ['holds line breaks', 'a,"b\r\nc\nd\re"\nf', [['a', 'b\r\nc\nd\re'], ['f']]],
    ['holds doubled quotes', '"a ""b""","""",""', [['a "b"', '"', '']]],
    ['may be followed by blanks', '"a" ,"b"\t\n', [['a', 'b']]],
    ['keeps its own blanks', '" a "', [[' a ']]],
    ['holds 1,000 line breaks', `"a${LINES}",b`, [[`a${LINES}`, 'b']]],
    ['keeps bare quotes if it is closed on its line', '"a "b" c",d', [['a "b" c', 'd']]],
  ])('%s', (_, text, rows) => {
    expect(cells(text)).toEqual(rows)
  })
})

describe('records without a quote, which are not parsed', () => {
  test('have the cells that csv-parse finds', () => {
    const text = fc.string({ unit: fc.constantFrom('a', ',', ';', ' ', '\t', 'ß', '\0', '\ufeff') })
    fc.assert(
      fc.property(text, record => {
        const records = cells(`x,${record}`)
        expect(records).toEqual(parse(`x,${record}`, { relax_column_count: true }))
      }),
      { numRuns: runs(300) },
    )
  })

  test('keep their place among others', () => {
    const records = read('a,b\n"c\nd",e\nf\n"g",\n,h\n')
    expect(records.map(({ line, cells }) => [line, ...cells])).toEqual([
      [1, 'a', 'b'],
      [2, 'c\nd', 'e'],
      [4, 'f'],
      [5, 'g', ''],
      [6, '', 'h'],
    ])
  })
})

test.each([
  ['spaces', 'a, "b" ,c', ['a', 'b', 'c']],
  ['spaces, with a delimiter in the cell', 'a,  "b, ""c""", d', ['a', 'b, "c"', ' d']],
  ['spaces, with a line break in the cell', ' "a\nb", c', ['a\nb', ' c']],
  ['tabs', 'a,\t"b,c"\t,d', ['a', 'b,c', 'd']],
])('%s around the quotes of a cell are no data', (_, text, row) => {
  expect(cells(`${text}\nx,y`)).toEqual([row, ['x', 'y']])
})

describe('an unmatched quote', () => {
  test.each([
    ['inside a cell is data', 'a 5" b,c\nd', [['a 5" b', 'c'], ['d']]],
    [
      'after a blank is data',
      'a, "b,c\nd, "e" f',
      [
        ['a', ' "b', 'c'],
        ['d', ' "e" f'],
      ],
    ],
    [
      'that is never closed is data',
      '"a,b\nc,d\ne,f',
      [
        ['"a', 'b'],
        ['c', 'd'],
        ['e', 'f'],
      ],
    ],
    [
      'before a quoted cell of a later row is data',
      '"a,b\n"c",d\n',
      [
        ['"a', 'b'],
        ['c', 'd'],
      ],
    ],
    [
      'before a nickname does not extend to the next row',
      '"A" B,c\n"D" E,f\n',
      [
        ['"A" B', 'c'],
        ['"D" E', 'f'],
      ],
    ],
  ])('%s', (_, text, rows) => {
    expect(cells(text)).toEqual(rows)
  })

  test('affects only its own row, however far the end of the file is', () => {
    const rows = Array.from({ length: 60_000 }, (_, i) => `name ${i},u${i}@one.test`)
    const lines = ['"Ann,ann@one.test', ...rows, 'a late 5",zoe@one.test']
    for (const chunks of [[], [700_000, 1_000, 500_000]]) {
      const records = read(lines.join('\n'), { chunks })
      expect(records).toHaveLength(60_002)
      expect(records[0]?.cells).toEqual(['"Ann', 'ann@one.test'])
      expect(records.at(-1)?.cells).toEqual(['a late 5"', 'zoe@one.test'])
    }
  })

  test('hides no row after 1,000 line breaks, even if a later quote matches it', () => {
    const rows = Array.from({ length: 1_500 }, (_, i) => `name ${i},u${i}@one.test`)
    const text = ['"Ann,ann@one.test', ...rows, 'a late 5",zoe@one.test'].join('\n')
    for (const chunks of [[], [700, 20_000, 10_000], Array.from({ length: 100 }, () => 100)]) {
      const records = read(text, { chunks })
      expect(records.map(record => record.line)).toEqual(
        Array.from({ length: 1_502 }, (_, i) => i + 1),
      )
      expect(records[0]?.cells).toEqual(['"Ann', 'ann@one.test'])
    }
  })

  test('does not wait for the end of the file', () => {
    const reader = new RecordReader({ delimiter: ',' })
    const rows = reader.push(`"Ann,ann@one.test\n${'Bob,bob@one.test\n'.repeat(1_200)}`)
    expect(rows).toHaveLength(1_201)
  })

  test.each([
    ['after a quoted cell', '"c,d","A" B,e', ['c,d', '"A" B', 'e']],
    ['twice', '"A" B,"C" D', ['"A" B', '"C" D']],
    ['with doubled quotes in its cell', '"A"" B,c', ['"A"" B', 'c']],
    ['before one that is closed on the next line', '"A" B,"c\nd"', ['"A" B', 'c\nd']],
  ])('is data: %s', (_, text, row) => {
    expect(cells(`${text}\nx,y`)).toEqual([row, ['x', 'y']])
  })

  test.each(['"a,', '"a"b",', '""a,', '"a,""b,'])(
    'after each delimiter of a long line takes no more than a moment: %s',
    unit => {
      // If the rest of the line were searched from each quote, this would take minutes.
      const line = unit.repeat(Math.floor(900_000 / unit.length))
      expect(read(`${line}\nx,y`).at(-1)?.cells).toEqual(['x', 'y'])
    },
  )

  test('in every row takes no more than a moment', () => {
    // Each opening quote finds only pairs; if each search went to the end, this would take minutes.
    expect(read('"a,b\n""c,d\n'.repeat(15_000))).toHaveLength(30_000)
    expect(read('x,"""a\n'.repeat(30_000))).toHaveLength(30_000)
  })
})

describe('a record', () => {
  test('has the line on which it starts, counting breaks inside cells', () => {
    const records = read('a\r\n\n"b\nc\r\nd"\r"e"\n  \nf')
    expect(records.map(record => record.line)).toEqual([1, 3, 6, 8])
  })

  test('is skipped if blank, but not if it is an empty quoted cell or delimiters', () => {
    expect(cells('a\n\n \t \n""\n,\n\x1a')).toEqual([['a'], [''], ['', '']])
  })

  test('may have any width, and any character but its delimiter', () => {
    expect(cells('a\nb;c;;\n\0|,', ';')).toEqual([['a'], ['b', 'c', '', ''], ['\0|,']])
  })

  test.each([
    ['plain', `a\nb,${'x'.repeat(RECORD_LENGTH_MAX)}`],
    ['quoted', `a\n"${'x'.repeat(RECORD_LENGTH_MAX)}",b\n`],
    ['of many cells', `a\n${','.repeat(RECORD_LENGTH_MAX + 1)}\n`],
  ])('beyond the limit is rejected with its line: %s', (_, text) => {
    expect(() => read(text)).toThrow(/line 2 is longer than 1,048,576 characters/)
    const tenths = Array.from({ length: 10 }, () => Math.floor(text.length / 10))
    expect(() => read(text, { chunks: tenths })).toThrow(/line 2 is longer/)
  })

  test('below the limit is read', () => {
    const cell = 'x'.repeat(RECORD_LENGTH_MAX - 10)
    expect(cells(`"${cell}",b`)).toEqual([[cell, 'b']])
  })
})

const cell = fc.oneof(
  fc.string({ unit: fc.constantFrom('a', '"', ',', ';', '\n', '\r', ' ', 'é', '\t') }),
  fc.string(),
)
const chunks = fc.array(fc.nat(9), { maxLength: 40 })

test('reads back whatever csv-stringify writes, however it is chunked', () => {
  const table = fc.array(fc.array(cell, { minLength: 1, maxLength: 5 }), { maxLength: 8 })
  const dialect = fc.record({
    delimiter: fc.constantFrom(',', ';', '\t', '|'),
    newline: fc.constantFrom('\n', '\r\n', '\r'),
  })
  fc.assert(
    fc.property(table, dialect, chunks, (rows, { delimiter, newline }, cuts) => {
      const text = stringify(rows, {
        delimiter,
        record_delimiter: newline,
        quoted_match: /[\r\n]/,
        quoted_empty: true,
        // A row of blanks counts as a blank line.
        cast: { string: value => ({ value, quoted: /^\s*$/.test(value) }) },
      })
      expect(read(text, { delimiter, chunks: cuts }).map(record => record.cells)).toEqual(rows)
    }),
    { numRuns: runs(500) },
  )
})

test('reads well-formed text like csv-parse', () => {
  const quoted = cell.map(text => `"${text.replaceAll('"', '""')}"`)
  const plain = fc.string({ unit: fc.constantFrom('a', 'b', "'", '=', '@', 'é', '0') })
  const line = fc.array(fc.oneof(quoted, plain), { minLength: 2, maxLength: 4 })
  fc.assert(
    fc.property(fc.array(line, { minLength: 1, maxLength: 6 }), lines => {
      const text = lines.map(deps => deps.join(',')).join('\n')
      const theirs = parse(text, { relax_column_count: true, record_delimiter: '\n' })
      expect(cells(text)).toEqual(theirs)
    }),
    { numRuns: runs(500) },
  )
})

test('reads the same records from any text, however it is chunked', () => {
  fc.assert(
    fc.property(cell, cell, cell, chunks, (a, b, c, cuts) => {
      const text = a + b + c
      expect(read(text, { chunks: cuts })).toEqual(read(text))
    }),
    { numRuns: runs(1_000) },
  )
})
