import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isLocked, lockJob } from '../../src/store/lock.ts'
import { tempFolder } from '../support/database.ts'

test('a lock excludes a second one in the same process until it is released', () => {
  const dataDir = tempFolder()
  const first = lockJob(dataDir, 'job_a')
  expect(first).not.toBeNull()
  expect(lockJob(dataDir, 'job_a')).toBeNull()
  first?.release()
  const second = lockJob(dataDir, 'job_a')
  expect(second).not.toBeNull()
  second?.release()
})

test('locks of two names, or of two data directories, are two locks', () => {
  const dataDir = tempFolder()
  const locks = [
    lockJob(dataDir, 'job_a'),
    lockJob(dataDir, 'job_b'),
    lockJob(tempFolder(), 'job_a'),
  ]
  expect(locks).not.toContain(null)
  for (const lock of locks) lock?.release()
})

test('whether it is held can be seen without taking it, or making its file', () => {
  const dataDir = tempFolder()
  expect(isLocked(dataDir, 'job_a')).toBe(false)
  expect(readdirSync(dataDir)).toEqual([])
  const lock = lockJob(dataDir, 'job_a')
  expect(isLocked(dataDir, 'job_a')).toBe(true)
  lock?.release()
  expect(isLocked(dataDir, 'job_a')).toBe(false)
  lockJob(dataDir, 'job_a')?.release()
})

test('a data directory that cannot be used is named with a remedy', () => {
  const file = join(tempFolder(), 'file')
  writeFileSync(file, '')
  expect(() => lockJob(file, 'job_a')).toThrow(
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
  lockJob(dataDir, 'job_a')?.release()
  // A folder in its place cannot be written.
  mkdirSync(join(dataDir, 'locks', 'job_a.lock-journal'))
  const lock = lockJob(dataDir, 'job_a')
  expect(lock).not.toBeNull()
  expect(isLocked(dataDir, 'job_a')).toBe(true)
  lock?.release()
})
