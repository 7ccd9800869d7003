import { describe, expect, test } from 'vitest'
import { detectColumns, detectDialect, readList } from '../../src/csv/csv.ts'
import { RecordReader } from '../../src/csv/record.ts'
import { cleanAddress } from '../../src/engine/address/address.ts'
import { parseRow } from '../../src/jobs/import/submission.ts'
import { EvError } from '../../src/platform/error.ts'
import { fc, runs } from '../support/property.ts'

const bytes = (text: string) => Buffer.from(text)

async function read(text: string, options: Parameters<typeof detectDialect>[1] = {}) {
  const dialect = detectDialect(bytes(text), { complete: true, ...options })
  const rows = []
  for await (const batch of readList(once(bytes(text)), dialect)) rows.push(...batch)
  return { dialect, rows, texts: rows.map(row => row.text.trim()) }
}

async function* once(piece: Uint8Array) {
  yield piece
}

const ADDRESSES = ['ann@one.test', 'bob@two.test']

describe('the address column', () => {
  // Description of the list, its text, and the column (from 0) that holds ADDRESSES.
  test.each([
    ['one address per line', 'ann@one.test\nbob@two.test\n', 0],
    ['one address per line without a final line break', 'ann@one.test\nbob@two.test', 0],
    ['one address per line under an unknown name', 'Kontakte\nann@one.test\nbob@two.test', 0],
    ['display names', 'Ann Lee <ann@one.test>\nBob <bob@two.test>\n', 0],
    ['links', 'mailto:ann@one.test\nmailto:bob@two.test\n', 0],
    ['proxy addresses of a directory', 'A,SMTP:ann@one.test\nB,SMTP:bob@two.test\n', 1],
    ['items of SharePoint', 'Title,Person\nA,12;#ann@one.test\nB,Bob;#13;#bob@two.test\n', 1],
    ['items of SharePoint on lines', '12;#ann@one.test\nBob Lee;#13;#bob@two.test\n', 0],
    ['links of Slack', '<mailto:ann@one.test|Ann>\n<mailto:bob@two.test|b@two.test>\n', 0],
    ['a trailing delimiter', 'ann@one.test;\nbob@two.test;\n', 0],
    ['no header', 'Ann,Paris,ann@one.test\nBob,Rome,bob@two.test\n', 2],
    ['a name in Turkish', 'Ad,E-posta\nA,ann@one.test\nB,bob@two.test\n', 1],
    ['an unknown name', 'Owner,Contact\nsales,ann@one.test\nsales,bob@two.test\n', 1],
    ['years for names', 'Contact,2023,2024\nann@one.test,5,6\nbob@two.test,7,8\n', 0],
    ['an unnamed first column', ',email\n0,ann@one.test\n1,bob@two.test\n', 1],
    [
      'a contact export with types and second addresses',
      'Name,E-mail 1 - Type,E-mail 1 - Value,E-mail 2 - Value\nA,Work,ann@one.test,x@one.test\nB,Work,bob@two.test,y@two.test\n',
      2,
    ],
    [
      'decoys about mail',
      'email_opt_in,Email sent at,contactEmail\nyes,2024-01-01,ann@one.test\nno,2024-01-01,bob@two.test\n',
      2,
    ],
    [
      'a postal mailing address',
      'Mailing address,Contact\n1 High St,ann@one.test\n2 High St,bob@two.test\n',
      1,
    ],
    [
      'login names that look like addresses',
      'Username,Email\nx@l.test,ann@one.test\ny@l.test,bob@two.test\n',
      1,
    ],
    ['handles', 'handle,mail\n@ann,ann@one.test\n@bob,bob@two.test\n', 1],
    [
      'the address of an employee',
      'Owner Email,Lead Email\nme@own.test,ann@one.test\nme@own.test,bob@two.test\n',
      1,
    ],
    [
      'the same address in every row',
      'Clerk,Person\nme@own.test,ann@one.test\nme@own.test,bob@two.test\n',
      1,
    ],
    [
      'primary before second',
      'Email 2,Primary Email\nx@one.test,ann@one.test\ny@two.test,bob@two.test\n',
      1,
    ],
    ['equal names, the first empty', 'Email,Name,Email\n,A,ann@one.test\n,B,bob@two.test\n', 2],
    ['a result of ev', 'email,ev_email\nann@one.test,ann@one.test\nbob@two.test,bob@two.test\n', 0],
  ])('%s: is found', async (_, text, column) => {
    const { dialect, texts } = await read(text)
    expect(dialect.column).toBe(column)
    expect(texts.map(cell => cleanAddress(cell).text)).toEqual(ADDRESSES)
  })

  const customers = Array.from({ length: 20 }, (_, i) => `c${i}@one.test`)

  // Description of the list, its header, the row of each customer, and the column of the customers.
  test.each([
    [
      'payments with the address of the shop',
      'Date,From Email Address,To Email Address',
      (a: string, i: number) => (i % 7 === 6 ? `1,shop@own.test,${a}` : `1,${a},shop@own.test`),
      1,
    ],
    ['bookings', 'Email,Guest', (a: string) => `hotel@own.test,${a}`, 1],
    [
      'bookings of which a third have an address',
      'Email,Guest contact,Room',
      (a: string, i: number) => `hotel@own.test,${i % 3 === 0 ? a : '+49 170 123'},7`,
      1,
    ],
    [
      'invoices from two branches',
      'E-Mail-Adresse;Empfänger',
      (a: string, i: number) => `branch${i % 2}@own.test;${a}`,
      1,
    ],
    [
      'orders of few customers, with a number that looks like an address',
      'Message-ID,Email',
      (_: string, i: number) => `${i}.x@mail.test,c${i % 6}@one.test`,
      1,
    ],
  ])('%s: is found', async (_, header, row, column) => {
    const text = [header, ...customers.map(row), ''].join('\n')
    expect((await read(text)).dialect.column).toBe(column)
  })

  test('the only address of all rows is found if there is no other', async () => {
    const text = `Email,Name\n${'shop@own.test,Ann\n'.repeat(20)}`
    expect((await read(text)).dialect.column).toBe(0)
  })

  test.each([3, 8, 20, 50])(
    'in a report with two tables, the column of the second with %i addresses is found',
    async count => {
      const text = [
        ...['Report', 'Hosts', 'Name,Email,Joined,Left', 'Host,host@one.test,10:00,11:00'],
        ...['Attendees', 'Name,First name,Last name,Email'],
        ...Array.from({ length: count }, (_, i) => `A ${i},Ann,Lee,a${i}@one.test`),
      ].join('\n')
      expect((await read(text)).texts.filter(cell => /^a\d/.test(cell))).toHaveLength(count)
    },
  )

  test('a name is enough if no row has an address', async () => {
    expect((await read('name,email\nAnn,none\nBob,\n')).texts).toEqual(['none', ''])
  })

  test('half of the rows may be malformed if the name is address-like', async () => {
    const { texts } = await read('email,name\nn/a,A\nbob@two.test,B\nunknown,C\n')
    expect(texts).toEqual(['n/a', 'bob@two.test', 'unknown'])
  })

  test('a requested column is used, by name in any case or by number', async () => {
    const text = 'Email,Backup\nann@one.test,bob@two.test\n'
    expect((await read(text, { column: 'BACKUP' })).dialect.column).toBe(1)
    expect((await read(text, { column: 2 })).dialect.column).toBe(1)
    expect((await read(text, { column: '2' })).dialect.column).toBe(1)
  })

  test('the requested column decides the delimiter and the header', async () => {
    const { dialect, rows } = await read('a;b, c\n1;x\n2;y\n', { column: 'b, c' })
    expect(dialect).toMatchObject({ delimiter: ';', column: 1, columnName: 'b, c' })
    expect(rows.map(row => row.text)).toEqual(['x', 'y'])
  })

  test.each([
    ['a web page', '\uFEFF\r\n<!DOCTYPE html><title>Sign in</title>', /web page \(HTML\)/],
    ['a page with a table', '<html xmlns:x="urn:x"><table>', /web page \(HTML\)/],
    [
      'a table of HTML named .xls',
      '<table border="1" class="dataframe">\n<tr><td>ann@one.test</td></tr>\n</table>\n',
      /web page \(HTML\)/,
    ],
    ['a row of HTML', '<TR><TH>Email</TH></TR>\n<TR><TD>ann@one.test</TD></TR>', /web page/],
    [
      'a workbook of Excel 2003 in XML',
      '<?xml version="1.0"?>\n<?mso-application progid="Excel.Sheet"?>\n<Workbook><Data>ann@one.test</Data></Workbook>',
      /an XML file/,
    ],
    [
      'XML without a declaration',
      '<Workbook xmlns="urn:schemas-microsoft-com:office:spreadsheet">ann@one.test</Workbook>',
      /an XML file/,
    ],
    ['rich text', '{\\rtf1\\ansi\n\\f0 ann@one.test\\\nbob@two.test\\\n}', /rich text document/],
    [
      'contacts',
      'BEGIN:VCARD\r\nVERSION:3.0\r\nN:Lee;Ann;;;\r\nEMAIL;TYPE=HOME:ann@one.test\r\nEND:VCARD\r\n',
      /contacts \(vCard\).* Export the contacts as CSV/,
    ],
    [
      'LDIF',
      'version: 1\n\n# Ann\ndn: cn=Ann Lee,mail=ann@one.test\ncn: Ann Lee\nmail: ann@one.test\n',
      /an LDIF file/,
    ],
    ['LDIF in base64', 'dn:: Y249w4Q=\nmail: ann@one.test\n', /an LDIF file/],
    [
      'an SQL script',
      "-- dump\n\nSET NAMES = 'utf8';\nINSERT INTO people (id, email) VALUES (1, 'ann@one.test');\n",
      /an SQL script/,
    ],
    [
      'an mbox file',
      'From ann@one.test Mon Nov 16 10:00:00 2026\nFrom: <ann@one.test>\nSubject: hi, there\n\nHi\n',
      /an mbox file/,
    ],
    [
      'a message',
      'Received: from a.test\n\tby b.test;\n\tMon, 16 Nov 2026\nFrom: <ann@one.test>\n\nHi, Bob\n',
      /is a message, not a list/,
    ],
    [
      'a message whose fields of transport come later',
      'From: <ann@one.test>\nTo: bob@two.test,\n cy@two.test\nMessage-ID: <1@one.test>\n\nHi, Bob\n',
      /is a message, not a list/,
    ],
  ])('%s is rejected by its start', (_, text, message) => {
    for (const options of [{}, { column: 1 }]) {
      const attempt = () => detectDialect(bytes(text), { complete: true, ...options })
      expect(attempt).toThrow(message)
      expect(attempt).toThrow(expect.objectContaining({ code: 'bad_input' }))
    }
  })

  test.each([
    ['an address in brackets', '<ann@one.test>\n<bob@two.test>\n'],
    ['column names in brackets', '<title>,<email>\nDr,ann@one.test\nMs,bob@two.test\n'],
    ['column names in brackets and tabs', '<title>\t<email>\nDr\tann@one.test\nMs\tbob@two.test\n'],
    ['fields of a message that people paste', 'From: ann@one.test\nTo: bob@two.test\n'],
    ['a name like a field', 'message-id,email\n1,ann@one.test\n2,bob@two.test\n'],
  ])('%s are no other format', async (_, text) => {
    expect((await read(text)).texts.map(cell => parseRow(cell, 1).text)).toEqual([
      'ann@one.test',
      'bob@two.test',
    ])
  })

  test.each([
    ['an empty list', '', {}, /The list is empty/],
    ['a list of blank lines', ' \n\t\n\n', {}, /The list is empty/],
    ['a list with only a byte order mark', '\uFEFF\n', {}, /The list is empty/],
    ['a list without addresses', 'name,city\nAnn,Paris\n', {}, /1 name, 2 city.*--column NAME/],
    ['JSON objects', '[{"id":1,"email":"ann@one.test"}]', {}, /JSON objects.* Save it as CSV/],
    [
      'JSON objects with more than an address, on one line',
      '[{"email":"ann@one.test","note":"a | b@two.test"},{"email":"cy@one.test","note":""}]',
      {},
      /JSON objects/,
    ],
    ['nested arrays of JSON', '[["Ann","ann@one.test"],["Bob","bob@two.test"]]', {}, /nested arr/],
    ['JSON objects below a key', '{"data":[{"email":"ann@one.test","id":1}]}', {}, /JSON objects/],
    ['carets', 'name^email\nAnn^ann@one.test\nBob^bob@two.test\n', {}, /separated by \^, which/],
    ['tildes', 'name~email\nAnn~ann@one.test\nBob~bob@two.test\n', {}, /separated by ~, which/],
    ['delimiters of Hive', 'id\x01email\n1\x01ann@one.test\n', {}, /control character U\+0001/],
    ['only decoys', 'email_opt_in,id\nyes,1\nno,2\n', {}, /No address column found/],
    [
      'an unknown name',
      'name,email\nA,a@one.test\n',
      { column: 'mial' },
      /"mial".*1 name, 2 email/,
    ],
    ['a number too large', 'name,email\nA,a@one.test\n', { column: 3 }, /3 is not.*2 columns/],
    ['the number zero', 'name,email\nA,a@one.test\n', { column: 0 }, /0 is not/],
    ['a name without header', 'A,a@one.test\n', { column: 'email', header: false }, /--column N/],
  ])('%s is rejected with what was found', (_, text, options, message) => {
    const attempt = () => detectDialect(bytes(text), { complete: true, ...options })
    expect(attempt).toThrow(message)
    expect(attempt).toThrow(expect.objectContaining({ code: 'bad_input' }))
  })
})

test('a message names the options as the interface does', () => {
  const words = { column: 'column', columnForms: 'the field column', noHeader: 'header=false' }
  const attempt = () =>
    detectDialect(bytes('name,email\nA,a@one.test\n'), { column: 'mial', words })
  expect(attempt).toThrow(
    /^column "mial" is not a column .* with the field column.* header=false if/,
  )
})

describe('the header', () => {
  test.each([
    ['a known name', 'email\nann@one.test\n', ['email']],
    ['`#` as the name of a column', '#,email\n1,ann@one.test\n', ['#', 'email']],
    ['a name after a hash', '#email\nann@one.test\n', ['#email']],
    [
      'a sample address in a name',
      'E-Mail (you@firma.test),Id\nann@one.test,1\n',
      ['E-Mail (you@firma.test)', 'Id'],
    ],
    ['a name without rows', 'name,email\n', ['name', 'email']],
  ])('%s is one', async (_, text, header) => {
    expect((await read(text)).dialect.header).toEqual(header)
  })

  test.each([
    ['an address', 'ann@one.test\nbob@two.test\n'],
    ['a malformed address', 'ann@\nbob@two.test\n'],
    ['a local part with a dot', 'ann.lee\nbob@two.test\n'],
    ['an address that begins with a hash', '#ann@one.test\nbob@two.test\n'],
    ['a row with a number', '1,nobody,Paris\n2,bob@two.test,Rome\n'],
    ['a row with a repeated value', 'Ann,nobody,yes\nBob,bob@two.test,yes\n'],
    ['a row without its address', 'Ann,,Paris\nBob,bob@two.test,Rome\n'],
  ])('%s is not one', async (_, text) => {
    const { dialect, rows } = await read(text)
    expect(dialect.header).toBe(null)
    expect(rows).toHaveLength(2)
  })

  test.each([
    ['a list that two were joined to', 'id,contact\n1,ann@one.test\nid,contact\n2,bob@two.test\n'],
    [
      'a report with tables',
      'Name,Email,x\nA,ann@one.test,\n\n2. Guests\nName,E-Mail,x\nB,bob@two.test,\n',
    ],
  ])('in the middle of %s is a row without an address', async (_, text) => {
    const { rows } = await read(text)
    expect(rows.map(row => row.text).filter(cell => cell !== '')).toEqual(ADDRESSES)
    expect(rows.length).toBeGreaterThan(2)
  })

  test('the header option overrides detection', async () => {
    const text = 'email\nann@one.test\n'
    expect((await read(text, { header: false })).texts).toEqual(['email', 'ann@one.test'])
    const forced = await read('ann@one.test\nbob@two.test\n', { header: true })
    expect(forced.texts).toEqual(['bob@two.test'])
  })

  test.each([
    ['a separator line', 'sep=;\r\nname;email\r\nA;ann@one.test\r\n', 1],
    ['comments', '# made by a machine\n# rows: 1\nname,email\nA,ann@one.test\n', 2],
    ['comments without a header', '# made by a machine\n\nann@one.test\n', 2],
    ['a title', 'Customers, March\n\nname,city,contact\nA,Rome,ann@one.test\n', 2],
    ['blank rows', ',,,\n,,,\n,name,city,e-mail\n,,,\n,A,Rome,ann@one.test\n', 2],
    ['a title between blank rows', ';;\n;March;\n;;\n;name;e-mail\n;A;ann@one.test\n', 3],
    ['a padded title', 'Customers,,\nname,city,e-mail\nA,Rome,ann@one.test\n', 1],
  ])('%s before it is skipped', async (_, text, skipLines) => {
    const { dialect, texts } = await read(text)
    expect(dialect.skipLines).toBe(skipLines)
    expect(texts.filter(text => text !== '')).toEqual(['ann@one.test'])
  })
})

describe('the delimiter and the line break', () => {
  test.each([
    [',', 'name,email\nA,ann@one.test\n'],
    [';', 'name;email;note\n"Lee, A";ann@one.test;a, b, c\n'],
    [';', 'email;sum\nann@one.test;1,5\n'],
    ['\t', 'name\temail\nLee, A; B\tann@one.test\n'],
    ['|', 'name|email|city\nLee, A|ann@one.test|Rome, IT\n'],
    [',', 'owner,contact,note\nme,ann@one.test,called; see #12\n'],
  ])('%j is detected among the others', async (delimiter, text) => {
    const { dialect, texts } = await read(text)
    expect(dialect.delimiter).toBe(delimiter)
    expect(texts).toEqual(['ann@one.test'])
  })

  test.each(['\n', '\r\n', '\r'] as const)('%j is detected and kept', async newline => {
    const text = ['name,email', 'A,ann@one.test', 'B,bob@two.test'].join(newline)
    const { dialect, texts } = await read(text)
    expect(dialect.newline).toBe(newline)
    expect(texts).toEqual(ADDRESSES)
  })

  test('a mixture is read completely, and the most frequent one is kept', async () => {
    const text = 'name,email\r\nA,ann@one.test\r\nB,bob@two.test\nC,cy@three.test\r'
    const { dialect, texts } = await read(text)
    expect(dialect.newline).toBe('\r\n')
    expect(texts).toHaveLength(3)
  })
})

describe('quotes escaped with a backslash', () => {
  const q = '\\"'

  test.each([
    [
      'JSON with two keys',
      `id,meta,email\n1,"{${q}a${q}:1,${q}b${q}:2}",ann@one.test\n2,"x",bob@two.test\n`,
    ],
    ['a company', `id,name,email\n1,"${q}Fa${q}, LLC",ann@one.test\n2,"x",bob@two.test\n`],
    [
      'an escaped quote at the end',
      `"1","Fa ${q}A${q}","ann@one.test"\n"2","Fa ${q}B${q}","bob@two.test"\n`,
    ],
    [
      'an escaped backslash at the end',
      `"1","C:\\\\dir\\\\","ann@one.test"\n"2","a ${q}b${q}, c","bob@two.test"\n`,
    ],
    ['semicolons', `id;meta;email\n1;"Fa. ${q}X${q}; Ltd";ann@one.test\n2;"y";bob@two.test\n`],
  ])('%s: are read', async (_, text) => {
    expect((await read(text)).texts).toEqual(ADDRESSES)
  })

  test('are unescaped in the cells', async () => {
    const { rows } = await read(`1,"a ${q}b${q}, c",ann@one.test\n2,"\\\\",bob@two.test\n`)
    expect(rows.map(row => row.cells[1])).toEqual(['a "b", c', '\\'])
  })

  test.each([
    ['a path', '1,"C:\\dir\\","ann@one.test"\n2,"Bob","bob@two.test"\n', 'C:\\dir\\'],
    [
      'doubled quotes',
      '1,"{""a"":1,""b"":2}",ann@one.test\n2,"{}",bob@two.test\n',
      '{"a":1,"b":2}',
    ],
  ])('are told from %s by the number of columns', async (_, text, cell) => {
    const { texts, rows } = await read(text)
    expect(texts).toEqual(ADDRESSES)
    expect(rows[0]?.cells[1]).toBe(cell)
  })

  test('are read where the first one is beyond the sample', async () => {
    const plain = '1,"plain",ann@one.test\n'.repeat(20_000)
    const text = `${plain}2,"a ${q}b${q}, c",bob@two.test\n3,"C:\\dir\\","cy@three.test"\n`
    const { dialect, rows } = await read(text, { complete: false })
    expect(dialect.quoting).toBeUndefined()
    expect(rows.slice(-3).map(row => row.cells)).toEqual([
      ['1', 'plain', 'ann@one.test'],
      ['2', 'a "b", c', 'bob@two.test'],
      ['3', 'C:\\dir\\', 'cy@three.test'],
    ])
  })
})

test('one line that is quoted as a cell is a row if it has all its cells', async () => {
  const plain = 'A,ann@one.test,x\n'.repeat(5)
  const { rows } = await read(
    `name,email,note\n${plain}"Lee, B",,\n"B,bob@two.test,""x, y"""\n"a, b"\n"(c) A, Inc., all rights"\n`,
  )
  expect(rows.slice(5).map(row => row.cells)).toEqual([
    ['Lee, B', '', ''],
    ['B', 'bob@two.test', 'x, y'],
    ['a, b'],
    ['(c) A, Inc., all rights'],
  ])
})

describe('delimiters and line breaks escaped with a backslash', () => {
  test.each([
    [
      'commas, as Python writes them without quotes',
      'id,name,email\n1,Lee\\, Ann,ann@one.test\n2,Bob,bob@two.test\n',
      'Lee, Ann',
    ],
    [
      'line breaks, as MySQL writes them',
      'id\tnote\temail\n1\tone\\\ntwo\tann@one.test\n2\t\\N\tbob@two.test\n',
      'one\ntwo',
    ],
    ['CRLF', '1;one\\\r\ntwo;ann@one.test\r\n2;x;bob@two.test\r\n', 'one\r\ntwo'],
    ['tabs', '1\ta\\\tb\tann@one.test\n2\tx\tbob@two.test\n', 'a\tb'],
    ['bars', '1|a\\|b \\\\ "c"|ann@one.test\n2|x|bob@two.test\n', 'a|b \\ "c"'],
    ['at the start of a cell', '1,\\,a,ann@one.test\n2,x,bob@two.test\n', ',a'],
    ['beside quoted cells', '1,a\\,b,"ann@one.test"\n"2","x ""y""","bob@two.test"\n', 'a,b'],
  ])('are read: %s', async (_, text, cell) => {
    const { dialect, texts, rows } = await read(text)
    expect(dialect.quoting).toBe('backslash')
    expect(texts).toEqual(ADDRESSES)
    expect(rows[0]?.cells[1]).toBe(cell)
  })

  test('are read in chunks of any length', async () => {
    const text = '1;a\\;b\\\r\nc\\\\;ann@one.test\n2;x;bob@two.test\n'
    for (let length = 1; length < 10; length++) {
      const reader = new RecordReader({ delimiter: ';', quoting: 'backslash' })
      const records = []
      for (let at = 0; at < text.length; at += length) {
        records.push(...reader.push(text.slice(at, at + length), at + length >= text.length))
      }
      expect(records.map(record => record.cells)).toEqual([
        ['1', 'a;b\r\nc\\', 'ann@one.test'],
        ['2', 'x', 'bob@two.test'],
      ])
      expect(records.map(record => record.line)).toEqual([1, 3])
    }
  })

  test('are told from data by the number of columns', async () => {
    const paths = '1,C:\\dir\\,ann@one.test\n2,C:\\,bob@two.test\n'
    expect((await read(paths)).rows.map(row => row.cells[1])).toEqual(['C:\\dir\\', 'C:\\'])
    const last = 'email,path\nann@one.test,C:\\\nbob@two.test,D:\\\n'
    expect((await read(last)).rows.map(row => row.cells[1])).toEqual(['C:\\', 'D:\\'])
    const mixed =
      '1,a\\,b,ann@one.test\n2,x\\,bob@two.test\n3,a\\,c,cy@three.test\n4,y,ann@one.test\n5,z,ann@one.test\n'
    expect((await read(mixed)).rows.map(row => row.cells[1])).toEqual([
      'a,b',
      'x\\',
      'a,c',
      'y',
      'z',
    ])
  })

  test('are read where the first one is beyond the sample', async () => {
    const plain = '1,plain,ann@one.test\n'.repeat(20_000)
    const text = `${plain}2,"a",bob@two.test\n3,b\\,c,cy@three.test\n4,d\\\ne,ann@one.test\n`
    const { dialect, rows } = await read(text, { complete: false })
    expect(dialect.quoting).toBeUndefined()
    expect(rows.slice(-2).map(row => row.cells)).toEqual([
      ['3', 'b,c', 'cy@three.test'],
      ['4', 'd\ne', 'ann@one.test'],
    ])
  })
})

describe('cells in apostrophes', () => {
  test.each([
    [
      'all texts, as SQLite writes them',
      "'id','name','email'\n1,'Lee, Ann','ann@one.test'\n2,'O''Neil','bob@two.test'\n",
      ['Lee, Ann', "O'Neil"],
    ],
    [
      'only those that need it',
      "id;name;email\n1;'Lee; Ann';ann@one.test\n2;O'Neil;bob@two.test\n3;x;x\n",
      ['Lee; Ann', "O'Neil", 'x'],
    ],
    [
      'line breaks and quotation marks',
      'id|name|email\n1|\'a "b"\n|c\'|ann@one.test\n2|"x|bob@two.test\n3|"y"|\'x\'\n',
      ['a "b"\n|c', '"x', '"y"'],
    ],
  ])('are read: %s', async (_, text, cells) => {
    const { dialect, texts, rows } = await read(text)
    expect(dialect.quoting).toBe('single')
    expect(texts.slice(0, 2)).toEqual(ADDRESSES)
    expect(rows.map(row => row.cells[1])).toEqual(cells)
  })

  test('have the address without apostrophes, also if no cell needs them', async () => {
    const text = "'email','name'\n'o''neil@one.test','O''Neil'\n'bob@two.test','Bob'\n"
    const { dialect, texts } = await read(text)
    expect(dialect.header).toEqual(['email', 'name'])
    expect(texts).toEqual(["o'neil@one.test", 'bob@two.test'])
  })

  test.each([
    ['names', "name,email\n't Hooft,ann@one.test\nO'Neil,bob@two.test\n", "'t Hooft"],
    [
      'texts that an export guards from spreadsheets',
      "phone,email\n'+49 1,ann@one.test\n'+49 2,bob@two.test\n",
      "'+49 1",
    ],
    [
      'a quote in quotes',
      `name,email\n"'Lee', Ann",ann@one.test\n'B',bob@two.test\n`,
      "'Lee', Ann",
    ],
  ])('are told from %s', async (_, text, cell) => {
    const { dialect, texts, rows } = await read(text)
    expect(dialect.quoting).toBeUndefined()
    expect(texts).toEqual(ADDRESSES)
    expect(rows[0]?.cells[0]).toBe(cell)
  })
})

describe('a CR alone in a list with other line breaks', () => {
  test.each([
    ['beside an LF that mysql writes as \\n', '\t', 'one\r\\ntwo'],
    ['beside an LF that MySQL escapes', '\t', 'one\r\\\ntwo'],
    ['several times', ';', 'one\rtwo\r\rthree'],
    ['beside quotes', ',', 'one "1"\rtwo'],
  ])('is part of its cell if the record is complete with it: %s', async (_, d, note) => {
    const row = (...cells: string[]) => `${cells.join(d)}\n`
    const plain = row('1', 'Lee', 'x', 'ann@one.test', '')
    const text = row('id', 'name', 'note', 'email', 'zip') + plain + plain
    const broken = row('2', '"Ray"', note, 'bob@two.test', '7')
    const { rows } = await read(text + broken + plain)
    expect(rows.map(({ cells }) => cells)).toEqual([
      ['1', 'Lee', 'x', 'ann@one.test', ''],
      ['1', 'Lee', 'x', 'ann@one.test', ''],
      ['2', 'Ray', note.replace('\\\n', '\n'), 'bob@two.test', '7'],
      ['1', 'Lee', 'x', 'ann@one.test', ''],
    ])
  })

  test('else ends a record, also a short one', async () => {
    const text =
      'email,name,city\nann@one.test,A,x\nbob@two.test\rcy@three.test\ndora@one.test,D,y\n'
    const { texts } = await read(text)
    expect(texts).toEqual(['ann@one.test', 'bob@two.test', 'cy@three.test', 'dora@one.test'])
  })

  test('is read the same in chunks of any length', () => {
    const text = '1;a\rb;c\n2;d\r\ne;f;g\r3;h\r\r\n'
    const readIn = (length: number) => {
      const reader = new RecordReader({ delimiter: ';', width: 3, newline: '\n' })
      const records = []
      for (let at = 0; at < text.length; at += length) {
        records.push(...reader.push(text.slice(at, at + length), at + length >= text.length))
      }
      return records
    }
    for (let length = 1; length < 10; length++) expect(readIn(length)).toEqual(readIn(100))
    expect(readIn(100)[0]?.cells).toEqual(['1', 'a\rb', 'c'])
  })
})

describe('lines that are each quoted as one cell', () => {
  test.each([
    ['commas', '"Name,Family,Email"\n"Ann,Lee,ann@one.test"\n"Bob,Ray,bob@two.test"\n'],
    ['semicolons', '"Name;Email"\r\n"Ann;ann@one.test"\r\n"Bob;bob@two.test"\r\n'],
    ['doubled quotes', '"Name,""Email"""\n"Ann,""ann@one.test"""\n"""Lee, B"",bob@two.test"\n'],
    ['empty columns beside', '"Name,Email",,\n"Ann,ann@one.test",,\n"Bob,bob@two.test",,\n'],
    ['no header', '"Ann,ann@one.test"\n"Bob,bob@two.test"\n'],
    ['an unquoted header', 'Name,Email\n"Ann,ann@one.test"\n"Bob,bob@two.test"\n'],
    ['tabs', '"Name\tEmail"\n"Ann\tann@one.test"\n"Bob\tbob@two.test"\n'],
  ])('are read as rows: %s', async (_, text) => {
    expect((await read(text)).texts).toEqual(ADDRESSES)
  })

  test('stay one cell if it is an address with a comma in its name', async () => {
    const { dialect, texts } = await read('"Lee, A <ann@one.test>"\n"Ray, B <bob@two.test>"\n')
    expect(dialect.width).toBe(1)
    expect(texts).toEqual(['Lee, A <ann@one.test>', 'Ray, B <bob@two.test>'])
  })
})

describe('a list with several addresses per row', () => {
  const [A, B, C] = ['ann@one.test', 'bob@two.test', 'cy@three.test']

  // Without a header, every address is a row of its own, with the cells that it has in the output.
  test.each([
    ['commas', `${A},${B},${C}\n`],
    ['commas and spaces, without a final line break', `${A}, ${B}, ${C}`],
    ['semicolons', `${A};${B};${C}\n`],
    ['spaces', `${A} ${B} ${C}\n`],
    ['slashes', `${A}/${B}/${C}\n`],
    ['two delimiters', `${A}, ${B}; ${C}\n`],
    ['commas and semicolons of other scripts', `${A}، ${B}؛${C}\n`],
    ['half-width commas', `${A}､${B}､${C}\n`],
    ['rows of different length', `${A}, ${B},\n${C}\n`],
    ['several in some lines', `${A}\n${B} ${C}\n`],
    ['several far beyond the first lines', `${A}\n${B}, ${C}\n`],
    ['a JSON array', JSON.stringify([A, B, C])],
    ['a JSON array over several lines', JSON.stringify([A, B, C], null, 2)],
    ['JSON with a key', JSON.stringify({ emails: [A, B, C] })],
    ['a line of JSON for each', [A, B, C].map(email => JSON.stringify({ email })).join('\n')],
    ['a list of Python', `['${A}', '${B}', '${C}']\n`],
    ['a line in quotes', `"${A}, ${B}, ${C}"\n`],
  ])('is read address by address: %s', async (_, text) => {
    const { dialect, rows } = await read(text)
    expect(dialect).toMatchObject({ header: null, width: 1, column: 0, allAddresses: 'cells' })
    expect(rows.map(row => row.cells)).toEqual([[A], [B], [C]])
    expect(rows.map(row => row.text)).toEqual([A, B, C])
  })

  test.each([
    ['email', `email\n${A},${B}\n${C}\n`],
    ['Recipients:', `Recipients:\n${A}; ${B}; ${C}\n`],
  ])('is read address by address below a header of one name: %s', async (header, text) => {
    const { dialect, texts } = await read(text)
    expect(dialect).toMatchObject({ header: [header], columnName: header, width: 1 })
    expect(texts).toEqual([A, B, C])
  })

  test.each([
    ['as Outlook copies them', `Ann Lee <${A}>; Ray, Bob <${B}>; 'Cy' <${C}>\n`],
    ['as Gmail copies them', `"Lee, Ann" <${A}>, Bob Ray <${B}>, Cy <${C}>,\n`],
    ['with the names of the fields of a message', `To: ${A}, Bob <${B}>\nCc: ${C}\n`],
    ['without quotes around commas', `Lee, Ann <${A}>; Ray, Bob <${B}>; Fox, Cy <${C}>\n`],
  ])('is read recipient by recipient, with their names: %s', async (_, text) => {
    const { texts } = await read(text)
    expect(texts.map(cell => parseRow(cell, 1).text)).toEqual([A, B, C])
  })

  test('keeps malformed recipients', async () => {
    const { texts } = await read(`${A}, bob@, ${C}, <dan@four.test>, e@five.test, f@six.test\n`)
    expect(texts).toEqual([A, 'bob@', C, '<dan@four.test>', 'e@five.test', 'f@six.test'])
  })

  test('keeps a text beside an address in its row, and a row without an address', async () => {
    const list = `${A}\n${B}, Bob Ray\nLee, Ann\nCy Fox, ${C}, x\n`
    const { rows } = await read(`${list}${'dan@four.test\n'.repeat(50)}`)
    expect(rows.slice(0, 4).map(({ row, text, cells }) => [row, text, cells])).toEqual([
      [1, A, [A]],
      [2, B, [B, 'Bob Ray']],
      [3, 'Lee', ['Lee', 'Ann']],
      [4, C, [C, 'x', 'Cy Fox']],
    ])
  })

  test('keeps the other columns in each of its rows', async () => {
    const { dialect, rows } = await read(`1,Ann,${A},${B}\n2,Cy,${C},\n3,Dan,,\n`)
    expect(dialect).toMatchObject({ column: 2, addressColumns: [2, 3], allAddresses: 'columns' })
    expect(rows.map(({ row, text, cells }) => [row, text, ...cells])).toEqual([
      [1, A, '1', 'Ann', A, B],
      [1, B, '1', 'Ann', A, B],
      [2, C, '2', 'Cy', C, ''],
      [3, '', '3', 'Dan', '', ''],
    ])
  })

  const BOOK = `Name,E-mail,Points,E-mail 2\nAnn,${A} ::: ${B},7,${C}\nDan,dan@four.test,8,\n`

  test('with a header, has one row per row, and tells what else it holds', async () => {
    const { dialect, texts } = await read(BOOK)
    expect(texts).toEqual([`${A} ::: ${B}`, 'dan@four.test'])
    expect(dialect).toMatchObject({ column: 1, addressColumns: [1, 3], hasSeveral: true })
    expect(dialect.allAddresses).toBeUndefined()
  })

  test('is read address by address on request, or not at all', async () => {
    const { rows } = await read(BOOK, { allAddresses: true })
    expect(rows.map(row => [row.row, row.text])).toEqual([
      ...[A, B, C].map(text => [1, text]),
      [2, 'dan@four.test'],
    ])
    const one = await read(`${A},${B}\n`, { allAddresses: false })
    expect(one.rows.map(row => row.text)).toEqual([A])
    expect((await read(`${A},${B}\n`, { column: 2 })).texts).toEqual([B])
  })

  test('does not count logins, results of an earlier run and the address of the exporter', async () => {
    const row = (a: string) => `${a},${a},shop@own.test,${a}\n`
    const text = `Email,Username,Seller email,ev_email\n${row(A)}${row(B)}${row(C)}`
    expect((await read(text)).dialect.addressColumns).toEqual([0])
  })

  test('may have an address in one line of ten thousand cells', async () => {
    const addresses = Array.from({ length: 10_000 }, (_, i) => `a${i}@one.test`)
    const { rows } = await read(addresses.join(', '), { complete: false })
    expect(rows.map(row => row.text)).toEqual(addresses)
    expect(rows.every(row => row.cells.length === 1)).toBe(true)
  })
})

test('a head that ends within a row is judged by its complete rows', () => {
  const head = 'name,email\nAnn,ann@one.test\nBob,"bob@tw'
  expect(detectDialect(bytes(head), { complete: false })).toMatchObject({ column: 1, width: 2 })
})

test('the width is that of the header, or a little more if rows have more', async () => {
  expect((await read('email,name\na@one.test,A,,extra\nb@one.test\n')).dialect.width).toBe(4)
  expect((await read(`email,name\na@one.test${','.repeat(500)}\n`)).dialect.width).toBeLessThan(30)
})

test('any bytes are read to the end or rejected as bad input', async () => {
  const pieces = fc.constantFrom(
    '"',
    ',',
    ';',
    '\n',
    '\r',
    '\0',
    '\t',
    '#',
    'a@b.test',
    'email',
    '\uFEFF',
    ' ',
  )
  const input = fc.oneof(
    fc.uint8Array({ maxLength: 300 }),
    fc.array(pieces, { maxLength: 60 }).map(deps => Uint8Array.from(bytes(deps.join('')))),
  )
  const ends = { read: 0, refused: 0 }
  await fc.assert(
    fc.asyncProperty(input, async content => {
      try {
        const dialect = detectDialect(content, { complete: true })
        for await (const rows of readList(once(content), dialect)) {
          expect(rows.length).toBeGreaterThan(0)
        }
        ends.read++
      } catch (error) {
        if (!(error instanceof EvError && error.code === 'bad_input')) throw error
        ends.refused++
      }
    }),
    { numRuns: runs(2_000) },
  )
  expect(Math.min(ends.read, ends.refused)).toBeGreaterThan(0)
})

describe('a list without a requested address column', () => {
  const detect = (text: string, column?: string) =>
    detectColumns(bytes(text), { complete: true, ...(column === undefined ? {} : { column }) })

  test('is detected like any other if the column is found', () => {
    const text = 'name,email\nA,ann@one.test\n'
    const dialect = detectDialect(bytes(text), { complete: true })
    expect(detect(text)).toEqual({ dialect, isFound: true })
  })

  test('is detected without an address column if it is not found', () => {
    const { dialect, isFound } = detect('name;city\nA;Paris\nB;Rome\n')
    expect(isFound).toBe(false)
    expect(dialect).toMatchObject({ delimiter: ';', header: ['name', 'city'], width: 2 })
  })

  test('has the requested column, or an error that names the columns', () => {
    const text = 'name,city\nA,Paris\n'
    expect(detect(text, 'city')).toMatchObject({ isFound: true, dialect: { column: 1 } })
    expect(() => detect(text, 'mail')).toThrow(/"mail" is not a column .* 1 name, 2 city/)
  })
})
