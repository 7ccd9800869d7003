import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { parse } from 'csv-parse/sync'
import { describe, expect, test } from 'vitest'
import { openContent } from '../../src/formats/open-content.ts'
import { emptyFolder, runEv } from '../support/cli.ts'
import { createUploadService } from '../support/list-form.ts'
import { textRow, workbookOf, workbookParts, zipOf } from '../support/workbook.ts'

const MIB = 1024 * 1024
const CSV = 'name,email\nAnn,ann@a.test\n'
const ROWS = [['Ann', 'ann@a.test']]

/** Returns a function that uploads a file and returns its preview, or the error. */
async function previews() {
  const { upload } = await createUploadService()
  return async (file: string | Uint8Array, fields: Readonly<Record<string, string>> = {}) => {
    const response = await upload(file, { dry_run: 'true', ...fields })
    const body = (await response.json()) as Record<string, unknown>
    expect(response.status, JSON.stringify(body)).toBe('error' in body ? 400 : 200)
    return body
  }
}

/** Columns are not detected: all rows are read. */
const PLAIN = { header: 'false', column: '1' }

const preview = async (...args: Parameters<Awaited<ReturnType<typeof previews>>>) =>
  (await previews())(...args)

const errorOf = async (file: string | Uint8Array) => (await preview(file, PLAIN)).error

describe('the content of a list', () => {
  test('is a text file as it is', async () => {
    expect(await preview(CSV)).toMatchObject({ format: 'text', sheet: null, preview: ROWS })
  })

  test('is what a gzip file contains, also in several members', async () => {
    const members = Buffer.concat([gzipSync('name,email\n'), gzipSync('Ann,ann@a.test\n')])
    expect(await preview(members)).toMatchObject({ format: 'gzip', preview: ROWS })
  })

  test('is the only file of a ZIP archive; files of operating systems do not count', async () => {
    const zip = await zipOf({ '__MACOSX/._a.csv': 'x', '.DS_Store': 'x', 'data/a.csv': CSV })
    expect(await preview(zip)).toMatchObject({ format: 'zip', preview: ROWS })
  })

  test.each([
    [
      'of several files',
      () => zipOf({ 'a.csv': CSV, 'b.csv': CSV }),
      /contains 2 files: a\.csv, b\.csv\. It must/,
    ],
    ['without a file', () => zipOf({}), /is empty/],
    [
      'of a workbook',
      async () => zipOf({ 'a.xlsx': await workbookOf({}) }),
      /contains a workbook or another/,
    ],
    [
      'of an OpenDocument spreadsheet',
      () => zipOf({ mimetype: 'x', 'content.xml': '<a/>' }),
      /OpenDocument/,
    ],
  ])('is not an archive %s', async (_, zip, error) => {
    expect(await errorOf(await zip())).toMatch(error)
  })

  test.each([
    ['a truncated gzip file', gzipSync('x'.repeat(1_000)).subarray(0, 20), /gzip file is damaged/],
    ['a gzip file in a gzip file', gzipSync(gzipSync(CSV)), /another compressed file/],
    ['an old workbook', Buffer.from('d0cf11e0a1b11ae1', 'hex'), /old Excel workbook \(\.xls\)/],
    [
      'an image',
      Buffer.from('89504e470d0a1a0a', 'hex'),
      /a PNG image, not a text file\. A list is/,
    ],
    ['a program', Buffer.from('7f454c4602010100', 'hex'), /is a program, not a text file/],
    [
      'an unknown binary file',
      Buffer.from(Array.from({ length: 2_000 }, (_, n) => (n * 7_919) % 256)),
      /is a binary file, not a text file\. .*CSV, TSV.*\.xlsx.*gzip or ZIP/,
    ],
    [
      'a compressed image',
      gzipSync(Buffer.from('89504e470d0a1a0a', 'hex')),
      /is a PNG image, not a text file/,
    ],
    [
      'an encrypted workbook',
      Buffer.concat([
        Buffer.from('d0cf11e0', 'hex'),
        Buffer.alloc(70_000),
        Buffer.from('EncryptedPackage', 'utf16le'),
      ]),
      /workbook is encrypted/,
    ],
  ])('is not %s', async (_, file, error) => {
    expect(await errorOf(file)).toMatch(error)
  })

  test.each([
    [
      'with a few control characters',
      Buffer.from(`${'email\u0000\u0001\n'}${'ann@a.test\n'.repeat(20)}`),
    ],
    ['in UTF-16 without a byte order mark', Buffer.from('email\nann@a.test\n', 'utf16le')],
    ['in ISO-2022-JP', Buffer.from('\u001b$B%a!<%k\u001b(B\nann@a.test\n', 'latin1')],
  ])('may be a text %s', async (_, file) => {
    expect(await preview(file)).toMatchObject({ format: 'text' })
  })

  test('has no sheet unless it is a workbook', async () => {
    expect((await preview(CSV, { sheet: 'A' })).error).toMatch(/not a workbook .*"A"/)
  })
})

describe('a workbook', () => {
  test('yields the rows of its first visible sheet, or of the named one', async () => {
    const file = await workbookOf({
      sheets: { Notes: textRow('note'), Äb: textRow('a'), List: textRow('b') },
      attributes: { Notes: 'state="hidden"' },
    })
    const show = await previews()
    expect(await show(file, PLAIN)).toMatchObject({
      format: 'xlsx',
      sheet: 'Äb',
      sheets: ['Notes', 'Äb', 'List'],
      preview: [['a']],
    })
    expect(await show(file, { ...PLAIN, sheet: 'list' })).toMatchObject({ preview: [['b']] })
    expect(await show(file, { ...PLAIN, sheet: 'Notes' })).toMatchObject({ preview: [['note']] })
    expect(await show(file, { sheet: 'Liste' })).toMatchObject({
      error: 'The workbook has no sheet "Liste". Its sheets: Notes, Äb, List.',
    })
  })

  const CELLS: readonly (readonly [what: string, cell: string, text: string])[] = [
    ['a shared string', '<c t="s"><v>0</v></c>', 'ann@a.test'],
    ['rich text without its phonetic hints', '<c t="s"><v>1</v></c>', 'bob@b.test'],
    [
      'an inline string',
      '<c t="inlineStr"><is><r><t>a@</t></r><r><t>b.test</t></r></is></c>',
      'a@b.test',
    ],
    ['the result of a formula', '<c t="str"><f>A1</f><v>x@x.test</v></c>', 'x@x.test'],
    ['an empty text as the result of a formula', '<c t="str"><f>A1</f><v></v></c>', ''],
    ['an escaped character', '<c t="str"><v>a_x00E9_b_x005F_x0041_</v></c>', 'aéb_x0041_'],
    ['a number with at most 15 digits', '<c><v>0.10000000000000001</v></c>', '0.1'],
    ['a large number', '<c><v>1.5E+5</v></c>', '150000'],
    ['a boolean', '<c t="b"><v>1</v></c>', 'TRUE'],
    ['an error value', '<c t="e"><v>#N/A</v></c>', '#N/A'],
    ['a date', '<c s="1"><v>46082</v></c>', '2026-03-01'],
    ['a date with a time', '<c s="1"><v>46082.604166666664</v></c>', '2026-03-01 14:30:00'],
    ['a time of day', '<c s="2"><v>0.5</v></c>', '12:00:00'],
    ['a duration as its days', '<c s="3"><v>1.5</v></c>', '1.5'],
    ['a format with quoted letters as a number', '<c s="4"><v>7</v></c>', '7'],
    ['a date before March 1900', '<c s="1"><v>1</v></c>', '1900-01-01'],
    ['an ISO date', '<c t="d"><v>2026-03-01</v></c>', '2026-03-01'],
  ]

  test('yields each kind of cell as text', async () => {
    const file = await workbookOf({
      sheet: `<row>${CELLS.map(([, cell]) => cell).join('')}</row>`,
      strings:
        '<si><t>ann@a.test</t></si><si><r><t>bob@</t></r><r><t>b.test</t></r><rPh><t>x</t></rPh></si>',
      styles:
        '<numFmts><numFmt numFmtId="164" formatCode="[$-409]hh:mm AM/PM;@"/><numFmt numFmtId="165" formatCode="[h]:mm"/><numFmt numFmtId="166" formatCode="0 &quot;days&quot;"/></numFmts><cellStyleXfs><xf numFmtId="14"/></cellStyleXfs><cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="164"/><xf numFmtId="165"/><xf numFmtId="166"/></cellXfs>',
    })
    const { preview: rows } = await preview(file, PLAIN)
    const texts = (rows as string[][])[0] ?? []
    expect(CELLS.map(([what], n) => [what, texts[n]])).toEqual(
      CELLS.map(([what, , text]) => [what, text]),
    )
  })

  test('counts dates from 1904 if it says so', async () => {
    const styles = '<cellXfs><xf numFmtId="14"/></cellXfs>'
    const sheet = '<row><c s="0"><v>1</v></c></row>'
    expect(
      (await preview(await workbookOf({ sheet, styles, is1904: true }), PLAIN)).preview,
    ).toEqual([['1904-01-02']])
  })

  test('keeps the columns of its cells, and blank rows between others', async () => {
    const sheet =
      '<row r="2"><c r="B2" t="str"><v>b</v></c><c r="D2" s="1"/></row>' +
      '<row r="3"><c r="A3" s="1"/></row><row r="5"><c r="A5" t="str"><v>a</v></c></row>' +
      '<row r="6"><c r="A6" s="1"/></row>'
    expect((await preview(await workbookOf({ sheet }), PLAIN)).preview).toEqual([
      ['', 'b'],
      ['', ''],
      ['', ''],
      ['a', ''],
    ])
  })

  test('omits a long run of blank rows, which is the gap between two tables', async () => {
    const row = (number: number) =>
      `<row r="${number}"><c r="A${number}" t="str"><v>a${number}</v></c><c t="str"><v>b</v></c></row>`
    const sheet = row(1) + row(1_048_576)
    expect((await preview(await workbookOf({ sheet }), PLAIN)).preview).toEqual([
      ['a1', 'b'],
      ['a1048576', 'b'],
    ])
  })

  test('keeps delimiters, quotes and line breaks in cells', async () => {
    const cells = ['a;b', 'c,"d"', 'e\nf', 'sep=;', ' g ']
    const sheet = textRow('email', ...cells) + textRow('valid@a.example', 'x\n'.repeat(1_002))
    const home = emptyFolder()
    writeFileSync(join(home, 'list.xlsx'), await workbookOf({ sheet }))
    const args = ['bulk', 'list.xlsx', '--sandbox', '-o', 'out.csv', '--data-dir', 'data']
    expect(await runEv(args, { home, offline: true })).toMatchObject({ code: 0 })
    const rows = parse(readFileSync(join(home, 'out.csv'))) as string[][]
    expect(rows.map(row => row.slice(1, 6))).toEqual([cells, ['x '.repeat(1_002), '', '', '', '']])
  })

  test('is detected like CSV: header, address column', async () => {
    const sheet = textRow('Our customers') + textRow('Name', 'E-mail') + textRow('A;B', 'a@a.test')
    expect(await preview(await workbookOf({ sheet }))).toMatchObject({
      columns: [
        { number: 1, name: 'Name' },
        { number: 2, name: 'E-mail' },
      ],
      column_number: 2,
      delimiter: ',',
    })
  })

  test.each<[string, Partial<Record<string, string>>, RegExp]>([
    ['without a workbook part', { '_rels/.rels': '<Relationships/>' }, /it has no workbook/],
    ['without a sheet', { 'xl/workbook.xml': '<workbook/>' }, /no worksheet/],
    [
      'with malformed XML',
      { 'xl/worksheets/sheet1.xml': '<worksheet><sheetData>' },
      /unclosed tag/,
    ],
    [
      'with entities that expand (billion laughs)',
      {
        'xl/worksheets/sheet1.xml':
          '<!DOCTYPE a [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;">]><worksheet><sheetData><row><c t="str"><v>&b;</v></c></row></sheetData></worksheet>',
      },
      /document type declaration/,
    ],
    [
      'with an unknown entity',
      { 'xl/worksheets/sheet1.xml': '<worksheet>&lol;</worksheet>' },
      /undefined entity|entity/,
    ],
    [
      'with deep nesting',
      { 'xl/worksheets/sheet1.xml': '<a>'.repeat(10_000) },
      /nested too deeply/,
    ],
    [
      'with a text of 5 MB',
      { 'xl/worksheets/sheet1.xml': `<worksheet>${'x'.repeat(5 * MIB)}</worksheet>` },
      /too long/,
    ],
    [
      'with a cell beyond the last column',
      {
        'xl/worksheets/sheet1.xml':
          '<worksheet><sheetData><row><c r="ZZZZ1"/></row></sheetData></worksheet>',
      },
      /too many cells/,
    ],
    [
      'with a reference to a missing text',
      {
        'xl/worksheets/sheet1.xml':
          '<worksheet><sheetData><row><c t="s"><v>9</v></c></row></sheetData></worksheet>',
      },
      /damaged: cell A1 refers to a shared text, but the shared strings of the workbook do not have it/,
    ],
    [
      'without the part of a sheet',
      { 'xl/worksheets/sheet1.xml': undefined },
      /the part xl\/worksheets\/sheet1\.xml of a sheet is missing/,
    ],
    [
      'with a formula that has no result',
      {
        'xl/worksheets/sheet1.xml':
          '<worksheet><sheetData><row r="3"><c r="B3" t="str"><v>Email</v></c></row><row r="7"><c r="B7"><f>A7</f><v></v></c></row></sheetData></worksheet>',
      },
      /cell B7 \(column "Email"\) has a formula without a stored result.*save it in a spreadsheet/,
    ],
    [
      'with a formula that has no value, although it is a text',
      {
        'xl/worksheets/sheet1.xml':
          '<worksheet><sheetData><row><c t="str"><f>A7</f></c></row></sheetData></worksheet>',
      },
      /cell A1 has a formula without a stored result/,
    ],
    [
      'whose addresses are formulas with an empty text as result',
      {
        'xl/worksheets/sheet1.xml':
          '<worksheet><sheetData><row r="1"><c r="B1" t="str"><v>Email</v></c></row><row r="2"><c r="A2"><v>1</v></c><c r="B2" t="str"><f>A2</f><v></v></c></row><row r="3"><c r="B3" t="str"><f>A3</f><v/></c></row></sheetData></worksheet>',
      },
      /cell B2 \(column "Email"\) has a formula without a stored result/,
    ],
    [
      'whose addresses are formulas with 0 as result',
      {
        'xl/worksheets/sheet1.xml':
          '<worksheet><sheetData><row r="1"><c r="B1" t="str"><v>Email</v></c></row><row r="2"><c r="B2" t="str"><v>a@a.test</v></c></row><row r="3"><c r="B3"><f>A3&amp;"@a.test"</f><v>0</v></c></row></sheetData></worksheet>',
      },
      /cell B3 \(column "Email"\) has a formula without a stored result/,
    ],
    [
      'with a cell of many long parts',
      {
        'xl/worksheets/sheet1.xml': `<worksheet><sheetData><row r="2"><c t="inlineStr"><is>${`<t>${'x'.repeat(600_000)}</t>`.repeat(2)}`,
      },
      /Row 2 of the sheet is longer than 1,048,576 characters/,
    ],
  ])('%s is refused', async (_, parts, error) => {
    const base = workbookParts({ sheet: textRow('a'), strings: '<si><t>a</t></si>' })
    const all = Object.entries({ ...base, ...parts }).filter(([, part]) => part !== undefined)
    const file = await zipOf(Object.fromEntries(all) as Record<string, string>)
    expect(await errorOf(file)).toMatch(error)
  })

  test('without its shared strings is refused only if a cell needs them', async () => {
    const { 'xl/sharedStrings.xml': _, ...parts } = workbookParts({
      sheet: `${textRow('Email')}<row r="2"><c r="A2" t="s"><v>0</v></c></row>`,
      strings: '<si><t>a</t></si>',
    })
    expect(await errorOf(await zipOf(parts))).toMatch(
      /damaged: cell A2 \(column "Email"\) refers to a shared text, but the shared strings of the workbook are missing/,
    )
    const other = { ...parts, 'xl/worksheets/sheet1.xml': '<a><row><c><v>1</v></c></row></a>' }
    expect(await preview(await zipOf(other), PLAIN)).toMatchObject({ preview: [['1']] })
  })

  test('with formulas of which some have an empty text as result is read', async () => {
    const formula = (n: number, value: string) =>
      `<row r="${n}"><c r="A${n}" t="str"><f>B${n}</f><v>${value}</v></c><c r="B${n}"><v>1</v></c></row>`
    const parts = workbookParts({
      sheet: `${textRow('Email')}${formula(2, '')}${formula(3, 'a@a.test')}`,
      strings: '<si><t>a</t></si>',
    })
    expect(await preview(await zipOf(parts), PLAIN)).toMatchObject({
      preview: [
        ['Email', ''],
        ['', '1'],
        ['a@a.test', '1'],
      ],
    })
  })

  test.each([
    ['in the name of the part', 'worksheets/my%20sheet.xml', 'xl/worksheets/my%20sheet.xml'],
    ['in the relationship alone', 'worksheets/my%20sheet.xml', 'xl/worksheets/my sheet.xml'],
    ['nowhere', 'worksheets/my sheet.xml', 'xl/worksheets/my sheet.xml'],
    ['as a percent sign', 'worksheets/100%.xml', 'xl/worksheets/100%.xml'],
  ])('is read if the name of a part is encoded %s', async (_, target, name) => {
    const parts = workbookParts({
      sheet: textRow('a@a.test'),
      strings: '<si><t>a</t></si>',
    })
    const { 'xl/worksheets/sheet1.xml': sheet = '', ...others } = parts
    const relations = 'xl/_rels/workbook.xml.rels'
    const all = {
      ...others,
      [relations]: (others[relations] ?? '').replace('worksheets/sheet1.xml', target),
      [name]: sheet,
    }
    expect(await preview(await zipOf(all), PLAIN)).toMatchObject({ preview: [['a@a.test']] })
  })

  const OTHER_NAMES: readonly (readonly [string, string])[] = [
    ['xl/sharedStrings.xml', 'xl/SharedStrings.xml'],
    ['xl/worksheets/sheet1.xml', 'xl/worksheets/Sheet1.xml'],
    ['xl/workbook.xml', 'xl/Workbook.xml'],
    ['[Content_Types].xml', '[content_types].xml'],
    ['_rels/.rels', '_rels/.Rels'],
    ['xl/_rels/workbook.xml.rels', 'XL/_rels/Workbook.xml.rels'],
    ['xl/styles.xml', 'xl/Styles.XML'],
    ['xl/worksheets/sheet1.xml', 'xl/worksheets/%73heet1.xml'],
  ]

  test('is read if a part is named in another case', async () => {
    const parts = workbookParts({
      sheet: '<row><c t="s"><v>0</v></c><c s="0"><v>46082</v></c></row>',
      strings: '<si><t>a@a.test</t></si>',
      styles: '<cellXfs><xf numFmtId="14"/></cellXfs>',
    })
    const show = await previews()
    for (const [name, other] of OTHER_NAMES) {
      const renamed = Object.entries(parts).map(([key, part]) => [key === name ? other : key, part])
      expect(await show(await zipOf(Object.fromEntries(renamed)), PLAIN), other).toMatchObject({
        preview: [['a@a.test', '2026-03-01']],
      })
    }
  })

  test('may have relationships to any URL outside of it', async () => {
    const parts = workbookParts({ sheet: textRow('a@a.test') })
    const show = await previews()
    for (const url of ['http://[x', `https://x.test/${'a'.repeat(300)}`]) {
      const link = `<Relationship Id="x" Type="r/link" TargetMode="External" Target="${url}"/>`
      const name = 'xl/_rels/workbook.xml.rels'
      const linked = parts[name]?.replace('</Relationships>', `${link}$&`) ?? ''
      expect(await show(await zipOf({ ...parts, [name]: linked }), PLAIN)).toMatchObject({
        preview: [['a@a.test']],
      })
    }
  })

  test('has its cells in order, the last one of a column', async () => {
    const cells = [
      ['C1', 'c'],
      ['A1', 'a'],
      ['C1', 'd'],
      ['B1', ''],
    ]
    const sheet = cells.map(([r, t]) => `<c r="${r}" t="str"><v>${t}</v></c>`).join('')
    expect(
      (await preview(await workbookOf({ sheet: `<row>${sheet}</row>` }), PLAIN)).preview,
    ).toEqual([['a', '', 'd']])
  })

  test('with too many cell formats, and one with long number formats, is bounded', async () => {
    const styles = (xml: string) => workbookOf({ sheet: textRow('a'), styles: xml })
    const many = `<cellXfs>${'<xf/>'.repeat(250_001)}</cellXfs>`
    expect(await errorOf(await styles(many))).toMatch(/more than 250,000 cell formats/)
    const code = `<numFmt numFmtId="200" formatCode="${'[a'.repeat(400_000)}"/>`
    const long = `${code}<cellXfs>${'<xf numFmtId="200"/>'.repeat(100_000)}</cellXfs>`
    expect(await preview(await styles(long), PLAIN)).toMatchObject({ preview: [['a']] })
  })

  test('with large descriptions or too many sheets is refused', async () => {
    const base = workbookParts({ sheet: textRow('a'), strings: '', styles: '' })
    const refusal = async (parts: Record<string, string>) =>
      errorOf(await zipOf({ ...base, ...parts }))
    const rels = '_rels/.rels'
    const padding = ' '.repeat(17 * MIB)
    expect(await refusal({ [rels]: `${base[rels]}${padding}` })).toMatch(
      /\.rels is larger than 16 MiB/,
    )
    const many = base['xl/workbook.xml']?.replace(/<sheet .*?\/>/, one => one.repeat(10_001)) ?? ''
    expect(await refusal({ 'xl/workbook.xml': many })).toMatch(/more than 10000 sheets/)
  })

  test('is read row by row if its cells are far to the right', async () => {
    const sheet = '<row><c r="XFD1" t="str"><v>x</v></c></row>'.repeat(20)
    const file = await workbookOf({ sheet: sheet + textRow('a') })
    const shown = await preview(file, { header: 'false', column: '16384' })
    expect(shown).toMatchObject({ rows: 21, column_number: 16_384 })
  })

  test('with a row beyond a megabyte is refused', async () => {
    const sheet = `<row r="7">${'<c t="s"><v>0</v></c>'.repeat(40)}</row>`
    const strings = `<si><t>${'x'.repeat(32_767)}</t></si>`
    expect(await errorOf(await workbookOf({ sheet, strings }))).toMatch(
      /^Row 7 of the sheet is longer/,
    )
  })
})

describe('a decompression bomb', () => {
  const bomb = Buffer.alloc(17 * MIB, 'a\n')

  test.each<[string, () => Promise<Uint8Array>]>([
    ['in a ZIP archive', () => zipOf({ 'a.csv': bomb })],
    [
      'in the cells of a workbook',
      () =>
        zipOf({
          ...workbookParts({}),
          'xl/worksheets/sheet1.xml': `<worksheet>${'<a>aaaaaaaaaaaaaaaa</a>'.repeat(0.75 * MIB)}</worksheet>`,
        }),
    ],
    [
      'of a repeated text',
      () =>
        workbookOf({
          sheet: '<row><c t="s"><v>0</v></c></row>'.repeat(560),
          strings: `<si><t>${'x'.repeat(32_767)}</t></si>`,
        }),
    ],
    [
      'of empty columns',
      () => workbookOf({ sheet: '<row><c r="XFD1" t="str"><v>x</v></c></row>'.repeat(1_050) }),
    ],
  ])('%s ends at 200 times the size of the file', async (_, file) => {
    expect(await errorOf(await file())).toMatch(/more than 200 times its size/)
  })
})

describe('a compressed list', () => {
  const TEXT = 'ann@a.test\n'.repeat(1_000)

  async function expand(file: Uint8Array, expandedBytesMax: number): Promise<number> {
    const path = join(emptyFolder(), 'list')
    writeFileSync(path, file)
    let bytes = 0
    const content = await openContent(path, { expandedBytesMax })
    for await (const chunk of content.read()) bytes += chunk.byteLength
    return bytes
  }

  test.each<[string, () => Promise<Uint8Array>]>([
    ['gzip', async () => gzipSync(TEXT)],
    ['ZIP', () => zipOf({ 'a.csv': TEXT })],
  ])('of %s has a maximum size when it is expanded', async (_, file) => {
    expect(await expand(await file(), TEXT.length)).toBe(TEXT.length)
    await expect(expand(await file(), TEXT.length - 1)).rejects.toThrow(
      /^The list is larger than \S+ MiB when it is expanded, the limit for a compressed list\. Split it\.$/,
    )
  })
})
