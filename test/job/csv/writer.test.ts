import { describe, expect, test } from 'vitest'
import { createRowWriter, detectDialect, readList } from '../../../src/job/csv.ts'
import { fc, runs } from '../../support/property.ts'

const dialectOf = (text: string) => detectDialect(Buffer.from(text), { complete: true })
const LIST = 'name,email\nAnn,a@one.test\n'

describe('the lines of a result', () => {
  test('keep delimiter, line break and mark of the list', () => {
    const writer = createRowWriter(dialectOf('\uFEFFname;email\r\nAnn;a@one.test\r\n'), [
      'ev_class',
    ])
    expect(writer.header()).toBe('\uFEFFname;email;ev_class\r\n')
    expect(writer.row(['Ann', 'a@one.test'], ['risky'])).toBe('Ann;a@one.test;risky\r\n')
  })

  test('quote what must be quoted and nothing else', () => {
    const writer = createRowWriter(dialectOf(LIST), ['ev_smtp_text'])
    const row = writer.row(['a "b", c', 'x\ny'], ['550 5.1.1 no; none'])
    expect(row).toBe('"a ""b"", c","x\ny",550 5.1.1 no; none\n')
  })

  test('fill short rows up, so that our columns stand under their names', () => {
    const writer = createRowWriter(dialectOf(LIST), ['ev_valid'])
    expect(writer.row(['Ann'], [false])).toBe('Ann,,false\n')
  })

  test('put what a row has beyond all others last', () => {
    const writer = createRowWriter(dialectOf(LIST), ['ev_valid'])
    expect(writer.row(['Ann', 'a@one.test', 'x', 'y'], [true])).toBe('Ann,a@one.test,true,x,y\n')
  })

  test('widen the header where rows of the sample are wider', () => {
    const writer = createRowWriter(dialectOf('email,name\na@one.test,A,x\n'), ['ev_valid'])
    expect(writer.header()).toBe('email,name,,ev_valid\n')
    expect(writer.row(['a@one.test', 'A', 'x'], [true])).toBe('a@one.test,A,x,true\n')
  })

  test('write nothing for null, and numbers and flags as they are', () => {
    const writer = createRowWriter(dialectOf('a@one.test\n'), ['a', 'b', 'c', 'd'])
    expect(writer.row(['a@one.test'], [null, -1, true, ''])).toBe('a@one.test,,-1,true,\n')
  })

  test('name the columns of a list without a header', () => {
    const writer = createRowWriter(dialectOf('Ann,a@one.test\nBob,b@two.test\n'), ['ev_class'])
    expect(writer.header()).toBe('column_1,email,ev_class\n')
  })
})

describe('the formula guard', () => {
  const guarded = createRowWriter(dialectOf(LIST), ['ev_email', 'ev_smtp_text'])
  const raw = createRowWriter(dialectOf(LIST), ['ev_email', 'ev_smtp_text'], { raw: true })

  test.each(['=1+1', '+1', '-1', '@x', '\tx', '\0x', '＝1'])('puts a quote before %j', text => {
    expect(guarded.row(['A', 'b'], [null, text])).toBe(`A,b,,'${text}\n`)
    expect(raw.row(['A', 'b'], [null, text])).toBe(`A,b,,${text}\n`)
  })

  test('works within quotes', () => {
    expect(guarded.row(['A', 'b'], [null, '\r=1'])).toBe(`A,b,,"'\r=1"\n`)
  })

  test('leaves valid addresses under ev_email alone, and only there', () => {
    const row = guarded.row(['A', 'b'], ['+a@one.test', '+a@one.test'])
    expect(row).toBe("A,b,+a@one.test,'+a@one.test\n")
    expect(guarded.row(['A', 'b'], ['=cmd()', ''])).toBe("A,b,'=cmd(),\n")
  })

  test('never touches the original cells', () => {
    expect(guarded.row(['=1+1', '@b'], [null, null])).toBe('=1+1,@b,,\n')
  })
})

test('rows in are rows out: what is written is read back cell by cell', async () => {
  const text = fc.string({ unit: fc.constantFrom('a', '"', ',', '\n', '\r', ' ', 'ß', '=', '@') })
  const rows = fc.array(fc.tuple(text, text, text), { minLength: 1, maxLength: 20 })
  await fc.assert(
    fc.asyncProperty(rows, fc.constantFrom('\n', '\r\n', '\r'), async (table, newline) => {
      const dialect = { ...dialectOf('n,m,email\nx,y,a@one.test\n'), newline }
      const writer = createRowWriter(dialect, ['ev_a'], { raw: true })
      const output = writer.header() + table.map(row => writer.row(row, [row[0]])).join('')
      const back = []
      const source = (async function* () {
        yield Buffer.from(output)
      })()
      for await (const batch of readList(source, dialect)) back.push(...batch)
      expect(back.map(row => row.cells)).toEqual(table.map(row => [...row, row[0]]))
    }),
    { numRuns: runs(300) },
  )
})
