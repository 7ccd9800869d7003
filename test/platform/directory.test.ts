import { existsSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createDirectory } from '../../src/platform/directory.ts'
import { tempFolder } from '../support/database.ts'

test('creates a directory and its parents for their owner only, once', () => {
  const parent = join(tempFolder(), 'a')
  createDirectory(join(parent, 'b'))
  createDirectory(join(parent, 'b'))
  expect(statSync(join(parent, 'b')).isDirectory()).toBe(true)
  expect(statSync(parent).mode & 0o77).toBe(process.platform === 'win32' ? 0o66 : 0)
})

test('fails below a file', () => {
  const file = join(tempFolder(), 'file')
  writeFileSync(file, '')
  for (const path of [file, join(file, 'a'), join(file, 'a', 'b')]) {
    expect(() => createDirectory(path)).toThrow(/EEXIST|ENOTDIR|ENOENT/)
  }
})

test.skipIf(!existsSync('/proc/self'))('fails where the system creates no directory', () => {
  expect(() => createDirectory('/proc/ev/a')).toThrow(
    "ENOENT: no such file or directory, mkdir '/proc/ev'",
  )
})
