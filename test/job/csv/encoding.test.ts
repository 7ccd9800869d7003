import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { findEncoding, ListDecoder } from '../../../src/job/csv/encoding.ts'
import { detectDialect } from '../../../src/job/csv.ts'

const fixture = (name: string) =>
  readFileSync(new URL(`../../../fixtures/csv/${name}.csv`, import.meta.url))

const decode = (bytes: Uint8Array, encoding: string, chunkBytes = bytes.length) => {
  const decoder = new ListDecoder(encoding)
  let text = ''
  for (let i = 0; i < bytes.length; i += chunkBytes) {
    text += decoder.push(bytes.subarray(i, i + chunkBytes))
  }
  return text + decoder.push(new Uint8Array(), true)
}

// Encoding and a word that only the right decoding gives.
const FILES = [
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
  ['koi8-r', 'Самара'],
  ['ibm866', 'Казань'],
  ['macintosh', 'Besançon'],
  ['shift_jis', '高橋ゆき'],
  ['euc-jp', '高橋ゆき'],
  ['iso-2022-jp', '高橋ゆき'],
  ['gb18030', '王小明'],
  ['big5', '林美玲'],
  ['euc-kr', '김민수'],
] as const

describe('the encoding of a list', () => {
  test.each(FILES)('%s is told from its bytes', (encoding, word) => {
    const bytes = fixture(encoding)
    expect(findEncoding(bytes, true).encoding).toBe(encoding)
    expect(decode(bytes, encoding)).toContain(word)
  })

  test.each(FILES)('%s decodes alike however it is cut', encoding => {
    const bytes = fixture(encoding)
    for (const chunkBytes of [1, 2, 3, 7]) {
      expect(decode(bytes, encoding, chunkBytes)).toBe(decode(bytes, encoding))
    }
  })

  test.each(FILES)('the address column is found in %s', encoding => {
    const { header, column } = detectDialect(fixture(encoding))
    expect(column).toBe((header?.length ?? 0) - 1)
  })

  test('a byte order mark is remembered and no part of the text', () => {
    expect(findEncoding(fixture('utf-8'), true)).toEqual({ encoding: 'utf-8', bom: true })
    expect(findEncoding(fixture('utf-16le'), true).bom).toBe(true)
    expect(decode(fixture('utf-8'), 'utf-8')).toMatch(/^Имя/)
    expect(decode(Buffer.from('\uFEFF\uFEFFemail'), 'utf-8')).toBe('email')
  })

  test('a character cut at the end of the head does not make UTF-8 another encoding', () => {
    const head = Buffer.from('имя,почта\nАнна,a@one.test\nЖ').subarray(0, -1)
    expect(findEncoding(head, false).encoding).toBe('utf-8')
  })

  test('a line in windows-1252 within UTF-8 spoils neither itself nor the others', () => {
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
  ])('%s is refused with the remedy', (_, bytes, message) => {
    expect(() => detectDialect(Uint8Array.from(bytes))).toThrow(message)
  })
})
