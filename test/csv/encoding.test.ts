import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { detectDialect } from '../../src/csv/csv.ts'
import { findEncoding, ListDecoder } from '../../src/csv/encoding.ts'

const fixture = (name: string) =>
  readFileSync(new URL(`../../fixtures/csv/${name}.csv`, import.meta.url))

const decode = (bytes: Uint8Array, encoding: string, chunkBytes = bytes.length) => {
  const decoder = new ListDecoder(encoding)
  let text = ''
  for (let i = 0; i < bytes.length; i += chunkBytes) {
    text += decoder.push(bytes.subarray(i, i + chunkBytes))
  }
  return text + decoder.push(new Uint8Array(), true)
}

// Encoding, a word that only the right decoding yields, and the detected encoding if it is a
// superset.
const FILES = (
  [
    ['utf-8', 'Анна'],
    ['utf-16le', '佐藤'],
    ['utf-16be', 'Jürgen'],
    ['windows-1252', 'Málaga'],
    ['windows-1250', 'Częstochowa'],
    ['windows-1251', 'Пётр'],
    ['windows-1253', 'Γιώργος'],
    ['windows-1254', 'Diyarbakır'],
    ['windows-1255', 'ירושלים'],
    ['windows-1256', 'القاهرة'],
    ['windows-874', 'กรุงเทพ'],
    ['koi8-r', 'Самара', 'koi8-u'],
    ['ibm866', 'Казань'],
    ['macintosh', 'Besançon'],
    ['shift_jis', '高橋ゆき'],
    ['euc-jp', '高橋ゆき'],
    ['iso-2022-jp', '高橋ゆき'],
    ['gb18030', '王小明'],
    ['big5', '林美玲'],
    ['euc-kr', '김민수'],
  ] as [file: string, word: string, reported?: string][]
).map(([file, word, reported = file]) => [file, word, reported] as const)

describe('the encoding of a list', () => {
  test.each(FILES)('%s is detected from its bytes', (encoding, word, reported) => {
    const bytes = fixture(encoding)
    expect(findEncoding(bytes, true).encoding).toBe(reported)
    expect(decode(bytes, encoding)).toContain(word)
  })

  test.each(FILES)('%s decodes the same however it is chunked', encoding => {
    const bytes = fixture(encoding)
    for (const chunkBytes of [1, 2, 3, 7]) {
      expect(decode(bytes, encoding, chunkBytes)).toBe(decode(bytes, encoding))
    }
  })

  test.each(FILES)('the address column is found in %s', encoding => {
    const { header, column } = detectDialect(fixture(encoding))
    expect(column).toBe((header?.length ?? 0) - 1)
  })

  // Single names of a short list, as bytes of the encoding.
  test.each([
    ['windows-1252', 'O\x92Brien', 'O’Brien'],
    ['windows-1252', 'D\x92Angelo \x96 Macy\x92s', 'D’Angelo – Macy’s'],
    ['windows-1252', '\x93quoted\x94 \xa320', '“quoted” £20'],
    ['windows-1252', '20\xa0\x80', '20\u00a0€'],
    ['windows-1252', `${'a note '.repeat(40)}by J\xfcrgen`, `${'a note '.repeat(40)}by Jürgen`],
    ['windows-1252', 'Fran\xe7ois Lef\xe8vre', 'François Lefèvre'],
    ['macintosh', 'Fran\x8dois Lef\x8fvre', 'François Lefèvre'],
    ['macintosh', 'K\x8athe Wei\xa7', 'Käthe Weiß'],
    ['macintosh', 'M\x9fller & S\x9ahne', 'Müller & Söhne'],
    ['windows-1251', '\xc8\xc2\xc0\xcd\xce\xc2', 'ИВАНОВ'],
    ['koi8-u', '\xc9\xd7\xc1\xce\xcf\xd7', 'иванов'],
    ['koi8-u', '\xe9\xd7\xc1\xce \xf0\xc5\xd4\xd2\xcf\xd7', 'Иван Петров'],
    ['iso-8859-5', '\xb8\xd2\xd0\xdd \xbf\xd5\xe2\xe0\xde\xd2', 'Иван Петров'],
    ['ibm866', '\x88\xa2\xa0\xad \x8f\xa5\xe2\xe0\xae\xa2', 'Иван Петров'],
    ['windows-1250', 'Ji\xf8\xed Dvo\xf8\xe1k', 'Jiří Dvořák'],
    ['iso-8859-2', 'Ma\xb3gorzata Wi\xb6niewska', 'Małgorzata Wiśniewska'],
  ])('%s is detected from a single name: %j', (encoding, bytes, text) => {
    const list = Buffer.from(`${bytes},a@one.test\n`, 'latin1')
    expect(findEncoding(list, true).encoding).toBe(encoding)
    expect(decode(list, encoding)).toBe(`${text},a@one.test\n`)
  })

  test('is the requested one, by any of its labels', () => {
    const list = Buffer.from('Gy\xf5r,a@one.test\n', 'latin1')
    expect(findEncoding(list, true, 'CP1250')).toEqual({ encoding: 'windows-1250', bom: false })
    expect(detectDialect(list, { encoding: 'latin2' }).encoding).toBe('iso-8859-2')
    expect(() => detectDialect(list, { encoding: 'ebcdic' })).toThrow('"ebcdic" is not a known')
  })

  test('several byte order marks are left out, in chunks of any length', () => {
    const bytes = Buffer.from('\ufeff\ufeffann@mail.example', 'utf16le')
    for (const length of [1, 2, 3, bytes.length]) {
      expect(decode(bytes, 'utf-16le', length)).toBe('ann@mail.example')
    }
  })

  test('a byte order mark is reported and not part of the text', () => {
    expect(findEncoding(fixture('utf-8'), true)).toEqual({ encoding: 'utf-8', bom: true })
    expect(findEncoding(fixture('utf-16le'), true).bom).toBe(true)
    expect(decode(fixture('utf-8'), 'utf-8')).toMatch(/^Имя/)
    expect(decode(Buffer.from('\uFEFF\uFEFFemail'), 'utf-8')).toBe('email')
  })

  test('a character cut at the end of the head is still UTF-8', () => {
    const head = Buffer.from('имя,почта\nАнна,a@one.test\nЖ').subarray(0, -1)
    expect(findEncoding(head, false).encoding).toBe('utf-8')
  })

  test('a windows-1252 line within UTF-8 is decoded and does not affect the others', () => {
    const bytes = Buffer.concat([
      Buffer.from('Łukasz\nŻaneta\n'),
      Buffer.from('Müller\n', 'latin1'),
      Buffer.from('Анна'),
    ])
    expect(findEncoding(bytes, true).encoding).toBe('utf-8')
    for (const chunkBytes of [1, 4, 100]) {
      expect(decode(bytes, 'utf-8', chunkBytes)).toBe('Łukasz\nŻaneta\nMüller\nАнна')
    }
  })

  test.each([
    ['a workbook', [0x50, 0x4b, 0x03, 0x04, 0x14], /Excel workbook/],
    ['an old workbook', [0xd0, 0xcf, 0x11, 0xe0], /old Excel/],
    ['gzip', [0x1f, 0x8b, 0x08], /gzip/],
    ['UTF-32', [0xff, 0xfe, 0x00, 0x00, 0x61, 0, 0, 0], /UTF-32/],
  ])('%s is rejected with advice', (_, bytes, message) => {
    expect(() => detectDialect(Uint8Array.from(bytes))).toThrow(message)
  })
})
