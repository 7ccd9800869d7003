import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createEngine } from '../../../src/index.ts'
import { EvError } from '../../../src/platform/error.ts'
import { createTestEngine } from '../../support/engine.ts'

let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'ev-lists-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

function listFile(content: string | Uint8Array): string {
  const file = join(folder, 'own.txt')
  writeFileSync(file, content)
  return file
}

/** Returns for each address whether a list blocks it. */
function blockedBy(content: string, ...emails: string[]): Promise<boolean[]> {
  const { reason } = createTestEngine({ engine: { blockedFile: listFile(content) } })
  return Promise.all(emails.map(async email => (await reason(email)) === 'blocklisted'))
}

/** Reads a list of blocked entries, as the engine does when it is created. */
const read = (content: string | Uint8Array) => createEngine({ blockedFile: listFile(content) })

describe('a list in a file', () => {
  const EMAILS = ['x@a.example', 'x@b.example', 'x@c.example', 'ann@a.test']

  test('has one entry per line; empty lines and comments are skipped', async () => {
    const list = '# ours\n\n  a.example\nb.example # for a while\n\t# and\n\nc.example'
    expect(await blockedBy(list, ...EMAILS)).toEqual([true, true, true, false])
  })

  test('may have CRLF or CR line ends and a byte order mark', async () => {
    const crlf = '\uFEFFa.example\r\n# x\r\nb.example\r\n'
    expect(await blockedBy(crlf, ...EMAILS)).toEqual([true, true, false, false])
    const cr = '\uFEFF# x\ra.example\rb.example'
    expect(await blockedBy(cr, ...EMAILS)).toEqual([true, true, false, false])
  })

  test('may name domains in any script', async () => {
    const emails = ['x@xn--mller-kva.example', 'x@例え.テスト']
    expect(await blockedBy('müller.example\n例え.テスト\n', ...emails)).toEqual([true, true])
  })

  test('keeps a # within an address', async () => {
    const emails = ['a#1@firm.example', 'a@firm.example']
    expect(await blockedBy('a#1@firm.example #1\n', ...emails)).toEqual([true, false])
  })

  test('may be empty', async () => {
    expect(await blockedBy('', ...EMAILS)).toEqual([false, false, false, false])
  })
})

describe('an invalid list is rejected', () => {
  test('with the file, the line, its text, the reason and the expected format', () => {
    expect(() => read('a.example\r\n\r\n# b\r\nfoo bar.example # c\r\n!\r\n')).toThrow(
      `The list ${folder}/own.txt has "foo bar.example" on line 4. There is a space at character 4, in the ` +
        'domain: remove it. Each line takes a domain such as example.com or an address such as ' +
        'ann@example.com; comments start with #.',
    )
  })

  test('with bad_config, so that ev does not start', () => {
    const role = () => createEngine({ roleFile: listFile('a b') })
    expect(role).toThrow(expect.objectContaining({ code: 'bad_config' }))
    expect(role).toThrow(EvError)
  })

  test('with hostile text sanitized and truncated', () => {
    const hostile = `\u001b[31m\u202e${'x'.repeat(5_000)}`
    const fault = captured(() => read(hostile))
    expect(fault).not.toMatch(/[\u0000-\u001f\u202e]/)
    expect(fault.length).toBeLessThan(500)
  })

  test.each<[string, Uint8Array]>([
    ['Latin-1', Buffer.from('a.example\nmüller.example\n', 'latin1')],
    ['UTF-16', Buffer.from('\uFEFFa.example\n', 'utf16le')],
  ])('with a hint on UTF-8 for %s', (_, bytes) => {
    expect(() => read(bytes)).toThrow(/UTF-8/)
  })

  test('with more bytes than the maximum', () => {
    const file = join(folder, 'huge.txt')
    writeFileSync(file, '')
    truncateSync(file, 32 * 1024 * 1024 + 1)
    expect(() => createEngine({ allowFile: file })).toThrow(
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
    expect(() => createEngine({ allowFile: path })).toThrow(message)
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
