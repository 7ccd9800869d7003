import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { acquireLock, isLocked } from '../../src/db/file-lock.ts'
import { tempFolder } from '../support/database.ts'

test('a lock excludes a second one in the same process until it is released', () => {
  const dataDir = tempFolder()
  const first = acquireLock(dataDir, 'job_a')
  expect(first).not.toBeNull()
  expect(acquireLock(dataDir, 'job_a')).toBeNull()
  first?.release()
  const second = acquireLock(dataDir, 'job_a')
  expect(second).not.toBeNull()
  second?.release()
})

test('locks with different names or data directories are independent', () => {
  const dataDir = tempFolder()
  const locks = [
    acquireLock(dataDir, 'job_a'),
    acquireLock(dataDir, 'job_b'),
    acquireLock(tempFolder(), 'job_a'),
  ]
  expect(locks).not.toContain(null)
  for (const lock of locks) lock?.release()
})

test('isLocked neither acquires the lock nor creates its file', () => {
  const dataDir = tempFolder()
  expect(isLocked(dataDir, 'job_a')).toBe(false)
  expect(readdirSync(dataDir)).toEqual([])
  const lock = acquireLock(dataDir, 'job_a')
  expect(isLocked(dataDir, 'job_a')).toBe(true)
  lock?.release()
  expect(isLocked(dataDir, 'job_a')).toBe(false)
  acquireLock(dataDir, 'job_a')?.release()
})

test('a data directory that cannot be used is an error with a remedy', () => {
  const file = join(tempFolder(), 'file')
  writeFileSync(file, '')
  expect(() => acquireLock(file, 'job_a')).toThrow(
    expect.objectContaining({
      code: 'io',
      message: expect.stringMatching(
        /^The data directory .*file.* cannot be used: .* --data-dir\.$/,
      ),
    }),
  )
})

test('a lock needs no journal, so it works on a full disk', () => {
  const dataDir = tempFolder()
  acquireLock(dataDir, 'job_a')?.release()
  // A folder at its path makes it unwritable.
  mkdirSync(join(dataDir, 'locks', 'job_a.lock-journal'))
  const lock = acquireLock(dataDir, 'job_a')
  expect(lock).not.toBeNull()
  expect(isLocked(dataDir, 'job_a')).toBe(true)
  lock?.release()
})
