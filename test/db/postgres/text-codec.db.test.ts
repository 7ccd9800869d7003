import { sql } from 'kysely'
import { describe, expect, test } from 'vitest'
import {
  decodeText,
  encodeArray,
  encodeJson,
  encodeText,
} from '../../../src/db/postgres/encoding.ts'
import { typedRows } from '../../../src/db/sql-dialect.ts'
import { onPostgres, tempDatabase } from '../../support/database.ts'

const MARK = '\u{10fffe}'

describe('a text stored in PostgreSQL', () => {
  test.each([
    ['of ordinary characters', 'ann@x.test'],
    ['with a NUL', 'a\0b'],
    ['of only NULs', '\0\0'],
    ['with the mark itself', `a${MARK}b`],
    ['with the mark before its escape digits', `${MARK}0${MARK}1${MARK}2d800${MARK}`],
    ['with a mark before a NUL', `${MARK}\0`],
    ['that looks like JSON with a NUL', '{"a":"\\u0000"}'],
    ['that is JSON with a lone surrogate', '["\\ud83d","\\uDE00 x"]'],
    ['that is JSON with an escaped backslash before u0000', '"\\\\u0000"'],
    ['that is JSON with a backslash before an escape', '"\\\\\\u0000\\u0000"'],
    ['that starts like JSON, but is not', '{\0\\u0000'],
  ])('%s is read as it was written, without a NUL in storage', (_, text) => {
    expect(encodeText(text)).not.toContain('\0')
    expect(decodeText(encodeText(text))).toBe(text)
  })

  test('is not encoded if not necessary; escapes outside of JSON are kept', () => {
    for (const text of ['ann@x.test', '\\u0000', 'C:\\u0000', '{"a":"\\u00e9"}', '"\\\\u0000"']) {
      expect(encodeText(text)).toBe(text)
    }
  })

  test('JSON in it has no escapes of NUL or of surrogates', () => {
    const json = encodeText(JSON.stringify({ a: '\0', b: '\ud800', c: '\\u0000', d: '😀' }))
    expect(JSON.parse(json)).toEqual({
      a: `${MARK}20000`,
      b: `${MARK}2d800`,
      c: '\\u0000',
      d: '😀',
    })
  })
})

test('JSON that the database parses has encoded texts, and replaces lone surrogates', () => {
  const json = JSON.parse(
    encodeJson([{ text: 'a\0', cells: '["\\u0000"]', n: 1 }, '\ud800']).toPostgres(),
  )
  expect(json).toEqual([
    { text: encodeText('a\0'), cells: encodeText('["\\u0000"]'), n: 1 },
    '\ufffd',
  ])
})

test.each<[string, readonly unknown[], string]>([
  ['no values', [], '{}'],
  ['numbers and missing values', [1, null, undefined, -2], '{1,NULL,NULL,-2}'],
  ['booleans', [true, false], '{true,false}'],
  ['texts, among them the word null', ['a', '', 'NULL', '{,}'], '{"a","","NULL","{,}"}'],
  ['texts with quotes and backslashes', ['a"b\\c'], '{"a\\"b\\\\c"}'],
  ['texts with control characters', ['a\n"\t'], '{"a\n\\"\t"}'],
  ['texts with a NUL', ['a\0'], `{"a${MARK}0"}`],
  ['objects', [{ a: 'b' }], '{"{\\"a\\":\\"b\\"}"}'],
])('an array of %s is written as PostgreSQL reads it', (_, values, text) => {
  expect(encodeArray(values).toPostgres()).toBe(text)
})

test.runIf(onPostgres)('rows have the same values in PostgreSQL', async () => {
  const { db } = await tempDatabase()
  const given = [
    { id: 1, text: 'a"b\\c\n{,}\u007f😀', isOn: true, json: { a: ['"'] } },
    { id: 2, text: 'NULL', isOn: false, json: null },
    { id: 3, text: '\ud800', isOn: null },
  ]
  const columns = 'id bigint, text text, "isOn" boolean, json json'
  const { rows } = await sql`select * from ${typedRows(given, columns)}`.execute(db)
  expect(rows).toEqual([given[0], given[1], { id: 3, text: '\ufffd', isOn: null, json: null }])
  const none = await sql`select * from ${typedRows([], columns)}`.execute(db)
  expect(none.rows).toEqual([])
})
