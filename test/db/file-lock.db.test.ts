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

test('locks of two names, or of two data directories, are two locks', () => {
  const dataDir = tempFolder()
  const locks = [
    acquireLock(dataDir, 'job_a'),
    acquireLock(dataDir, 'job_b'),
    acquireLock(tempFolder(), 'job_a'),
  ]
  expect(locks).not.toContain(null)
  for (const lock of locks) lock?.release()
})

test('whether it is held can be seen without taking it, or making its file', () => {
  const dataDir = tempFolder()
  expect(isLocked(dataDir, 'job_a')).toBe(false)
  expect(readdirSync(dataDir)).toEqual([])
  const lock = acquireLock(dataDir, 'job_a')
  expect(isLocked(dataDir, 'job_a')).toBe(true)
  lock?.release()
  expect(isLocked(dataDir, 'job_a')).toBe(false)
  acquireLock(dataDir, 'job_a')?.release()
})

test('a data directory that cannot be used is named with a remedy', () => {
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

test('a lock needs no journal, for which a full disk has no room', () => {
  const dataDir = tempFolder()
  acquireLock(dataDir, 'job_a')?.release()
  // A folder in its place cannot be written.
  mkdirSync(join(dataDir, 'locks', 'job_a.lock-journal'))
  const lock = acquireLock(dataDir, 'job_a')
  expect(lock).not.toBeNull()
  expect(isLocked(dataDir, 'job_a')).toBe(true)
  lock?.release()
})
