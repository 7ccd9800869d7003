import { describe, expect, test } from 'vitest'
import { detectDialect, type ListRow, readList } from '../../src/csv/csv.ts'

async function* inChunks(bytes: Uint8Array, chunkBytes: number) {
  for (let i = 0; i < bytes.length; i += chunkBytes) yield bytes.subarray(i, i + chunkBytes)
}

async function batches(text: string, chunkBytes = 64 * 1024) {
  const bytes = Buffer.from(text)
  const dialect = detectDialect(bytes)
  const found: ListRow[][] = []
  for await (const batch of readList(inChunks(bytes, chunkBytes), dialect)) found.push(batch)
  return found
}

describe('the rows of a list', () => {
  test('are numbered from 1 after the header and have their line', async () => {
    const [rows] = await batches('# note\r\nname,email\r\n\r\n"A\nB",a@one.test\r\nC\r\n')
    expect(rows).toEqual([
      { row: 1, line: 4, cells: ['A\nB', 'a@one.test'], text: 'a@one.test' },
      { row: 2, line: 6, cells: ['C'], text: '' },
    ])
  })

  test('keep their different widths', async () => {
    const [rows] = await batches('email,name\na@one.test\nb@one.test,B,more,,\n')
    expect(rows?.map(row => row.cells)).toEqual([
      ['a@one.test'],
      ['b@one.test', 'B', 'more', '', ''],
    ])
  })

  test('come in batches of at most 500, all of them, in order', async () => {
    const text = Array.from({ length: 1_203 }, (_, i) => `u${i}@one.test\n`).join('')
    const found = await batches(text)
    expect(found.every(batch => batch.length > 0 && batch.length <= 500)).toBe(true)
    expect(found.flat().map(row => row.row)).toEqual(Array.from({ length: 1_203 }, (_, i) => i + 1))
    expect(found.flat().at(-1)?.text).toBe('u1202@one.test')
  })

  test('of very many cells come in smaller batches', async () => {
    const wide = `a@one.test,A${','.repeat(16_000)}\n`
    expect((await batches(wide.repeat(9))).map(batch => batch.length)).toEqual([7, 2])
  })

  test('that are long come in smaller batches', async () => {
    const long = `a@one.test,${'x'.repeat(600_000)}\n`
    expect((await batches(long.repeat(5))).map(batch => batch.length)).toEqual([2, 2, 1])
  })

  test('are the same however the bytes are chunked', async () => {
    const text = '\uFEFFsep=;\r\nимя;почта\r\n"Анна\r\nЛи";a@one.test\r\n\r\nБорис;b@two.test'
    const whole = await batches(text)
    expect(whole.flat()).toHaveLength(2)
    for (const chunkBytes of [1, 2, 3, 5, 11]) {
      expect(await batches(text, chunkBytes)).toEqual(whole)
    }
  })

  test('have no address if they are comments', async () => {
    for (const text of [
      'a@one.test\n# gone\nb@one.test\n',
      'email,x\na@one.test,1\n#gone\nb@one.test,2\n',
    ]) {
      const [rows] = await batches(text)
      expect(rows?.map(row => row.text)).toEqual(['a@one.test', '', 'b@one.test'])
    }
  })

  test('have no address if they describe the columns below their names', async () => {
    const [rows] = await batches(
      'EndDate,RecipientEmail\nEnd Date,Recipient Email\n"{""ImportId"":""endDate""}","{""ImportId"":""recipientEmail""}"\n1,a@one.test\n2,b c\n',
    )
    expect(rows?.map(row => row.text)).toEqual(['', '', 'a@one.test', 'b c'])
    const [malformed] = await batches('id,email\n1,a one.test\n2,b\n3,c@one.test\n')
    expect(malformed?.map(row => row.text)).toEqual(['a one.test', 'b', 'c@one.test'])
  })

  test('have their address where the header of their table has it', async () => {
    const [rows] = await batches(
      'Name,Role,Email\nA,x,a@one.test\nB,Email,\n\n3. Activities\nName,Email,Join,Role\nC,c@one.test,1,x\nName,Role,Email\nD,x,d@one.test\n',
    )
    expect(rows?.map(row => row.text)).toEqual([
      'a@one.test',
      '',
      '',
      '',
      'c@one.test',
      '',
      'd@one.test',
    ])
  })

  test('have the text of a cell that is written as a formula for spreadsheets', async () => {
    const [rows] = await batches('="1",="a@one.test"\n"=""2, x""","=""b@one.test"""\n')
    expect(rows?.map(row => row.text)).toEqual(['="a@one.test"', '="b@one.test"'])
  })

  describe('that are blank', () => {
    const find = async (text: string) =>
      (await batches(text)).flat().map(({ row, line, text }) => [row, line, text])

    test('have no address, unless they are lines without any cell', async () => {
      expect(await find('name,email\n,\nA,a@one.test\n\n" ",\nB,b@one.test\n')).toEqual([
        [1, 2, ''],
        [2, 3, 'a@one.test'],
        [3, 5, ''],
        [4, 6, 'b@one.test'],
      ])
    })

    test('are omitted at the end, and at the start of a list without a header', async () => {
      expect(await find(',\n,\na@one.test,A\nb@one.test,B\n,\n,\n')).toEqual([
        [1, 3, 'a@one.test'],
        [2, 4, 'b@one.test'],
      ])
    })

    test.each([
      ['1,000 rows', ',\n'.repeat(1_000), 1_002],
      ['more than 1,000 rows', ',\n'.repeat(1_001), 2],
      ['more than 100,000 cells', `${','.repeat(30_000)}\n`.repeat(4), 2],
    ])('are rows in a run of %s: %#', async (_, run, count) => {
      const rows = (await batches(`name,email\nA,a@one.test\n${run}B,b@one.test\n`)).flat()
      expect(rows).toHaveLength(count)
      expect(rows.at(-1)).toMatchObject({ row: count, text: 'b@one.test' })
    })
  })

  describe('have at most 32,768 columns', () => {
    test.each([
      ['a header', `email${','.repeat(32_768)}\na@one.test\n`, '1'],
      ['a row', `email,name\na@one.test,A\nb@one.test${','.repeat(32_768)}\n`, '3'],
      ['a row of tabs', `email\tname\na@one.test\tA\nb@one.test${'\t'.repeat(32_768)}\n`, '3'],
      [
        'a row beyond the sample',
        `${'email,name\na@one.test,A\n'.repeat(12_000)}b@one.test${','.repeat(32_768)}\n`,
        '24,001',
      ],
      ['a row with a bare quote', `email,name\na@one.test,A\nx"${','.repeat(32_768)}"y\n`, '3'],
    ])('in %s', async (_, text, line) => {
      const error = await batches(text).catch(error => error)
      expect(error).toMatchObject({ name: 'EvError', code: 'bad_input' })
      expect(error.message).toMatch(`The row on line ${line} has 32,769 columns`)
      expect(error.message).toMatch('a list has at most 32,768. Remove columns')
    })

    test('and delimiters in quoted cells are data', async () => {
      const many = `"${','.repeat(40_000)}""${','.repeat(40_000)}"`
      const [rows] = await batches(`email,name,note\na@one.test,A,${many}\n`)
      expect(rows?.[0]?.cells).toHaveLength(3)
      const exact = `a@one.test${','.repeat(32_767)}\n`
      expect((await batches(`email,name\n${exact}`)).flat()[0]?.cells).toHaveLength(32_768)
    })

    test('unless they are pasted recipients, of which each is a row', async () => {
      const pasted = Array.from({ length: 40_000 }, (_, n) => `u${n}@one.test`).join(', ')
      expect((await batches(pasted)).flat()).toHaveLength(40_000)
    })

    test('even if another delimiter gives columns with fewer', async () => {
      const [rows] = await batches(`email;note\na@one.test;${','.repeat(40_000)}\n`)
      expect(rows?.[0]?.text).toBe('a@one.test')
    })
  })

  test('do not exist in a list with only a header', async () => {
    expect(await batches('email,name\n')).toEqual([])
  })
})
