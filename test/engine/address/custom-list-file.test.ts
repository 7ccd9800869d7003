import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type CustomListName, keysInFile } from '../../../src/engine/address/custom-list-file.ts'
import { EvError } from '../../../src/platform/error.ts'

let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'ev-lists-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

function keys(content: string | Uint8Array, list: CustomListName = 'blocked'): string[] {
  const file = join(folder, 'own.txt')
  writeFileSync(file, content)
  return [...keysInFile(list, file)]
}

describe('a list in a file', () => {
  test('has one entry per line; empty lines and comments are skipped', () => {
    expect(keys('# ours\n\n  a.example\nb.example # for a while\n\t# and\n\nc.example')).toEqual([
      ...['a.example', 'b.example', 'c.example'],
    ])
  })

  test('may have CRLF or CR line ends and a byte order mark', () => {
    expect(keys('\uFEFFa.example\r\n# x\r\nb.example\r\n')).toEqual(['a.example', 'b.example'])
    expect(keys('\uFEFF# x\ra.example\rb.example')).toEqual(['a.example', 'b.example'])
  })

  test('may name domains in any script', () => {
    expect(keys('müller.example\n例え.テスト\n')).toEqual([
      ...['xn--mller-kva.example', 'xn--r8jz45g.xn--zckzah'],
    ])
  })

  test('keeps a # within an address', () => {
    expect(keys('a#1@firm.example #1\n')).toEqual(['a#1@firm.example'])
    expect(keys('team#1\n', 'role')).toEqual(['team#1'])
  })

  test('may be empty', () => expect(keys('')).toEqual([]))
})

describe('an invalid list is rejected', () => {
  test('with the file, the line, its text, the reason and the expected format', () => {
    expect(() => keys('a.example\r\n\r\n# b\r\nfoo bar.example # c\r\n!\r\n')).toThrow(
      `The list ${folder}/own.txt has "foo bar.example" on line 4. There is a space at character 4, in the ` +
        'domain: remove it. Each line takes a domain such as example.com or an address such as ' +
        'ann@example.com; comments start with #.',
    )
  })

  test('with bad_config, so that ev does not start', () => {
    expect(() => keys('a b', 'role')).toThrow(expect.objectContaining({ code: 'bad_config' }))
    expect(() => keys('a b', 'role')).toThrow(EvError)
  })

  test('with hostile text sanitized and truncated', () => {
    const hostile = `\u001b[31m\u202e${'x'.repeat(5_000)}`
    const fault = captured(() => keys(hostile))
    expect(fault).not.toMatch(/[\u0000-\u001f\u202e]/)
    expect(fault.length).toBeLessThan(500)
  })

  test.each<[string, Uint8Array]>([
    ['Latin-1', Buffer.from('a.example\nmüller.example\n', 'latin1')],
    ['UTF-16', Buffer.from('\uFEFFa.example\n', 'utf16le')],
  ])('with a hint on UTF-8 for %s', (_, bytes) => {
    expect(() => keys(bytes)).toThrow(/UTF-8/)
  })

  test('with more entries than the maximum', () => {
    const most = Array.from({ length: 20 }, (_, n) => `d${n}.example`).join('\n')
    const file = join(folder, 'most.txt')
    writeFileSync(file, most)
    expect([...keysInFile('blocked', file, 20)]).toHaveLength(20)
    expect(() => [...keysInFile('blocked', file, 19)]).toThrow(
      /longer than the maximum of 19 entries/,
    )
  })

  test('with more bytes than the maximum', () => {
    const file = join(folder, 'huge.txt')
    writeFileSync(file, '')
    truncateSync(file, 32 * 1024 * 1024 + 1)
    expect(() => [...keysInFile('allow', file)]).toThrow(
      /huge\.txt is longer than the maximum of 32 MiB/,
    )
  })

  test.each<[string, (path: string) => void, RegExp]>([
    [
      'not there',
      () => {},
      /cannot be read: no such file.*Correct the path or remove the setting\.$/,
    ],
    ['a folder', path => mkdirSync(path), /cannot be read: it is not a regular file/],
    // Opening a pipe would wait for a writer.
    ['a pipe', path => execFileSync('mkfifo', [path]), /cannot be read: it is not a regular file/],
  ])('when it is %s', (name, make, message) => {
    const path = join(folder, name)
    make(path)
    expect(() => [...keysInFile('allow', path)]).toThrow(message)
  })
})

function captured(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    return (error as Error).message
  }
  throw new Error('nothing was thrown')
}
