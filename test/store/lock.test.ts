import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { isLocked, lockJob } from '../../src/store/lock.ts'
import { tempFolder } from '../support/database.ts'

const LOCK = join(import.meta.dirname, '../../src/store/lock.ts')
/** Takes a lock, says whether it has it, and sits on it until it is killed or told to let go. */
const HOLDER = `
  const { lockJob } = await import(process.argv[1])
  const lock = lockJob(process.argv[2], 'job_a')
  console.log(lock === null ? 'refused' : 'held')
  process.stdin.once('data', () => { lock?.release(); console.log('released') })`

async function holder(dataDir: string): Promise<{ child: ChildProcess; says: string }> {
  const child = spawn(process.execPath, ['--input-type=module', '-e', HOLDER, LOCK, dataDir], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  return { child, says: await nextLine(child) }
}

async function nextLine({ stdout }: ChildProcess): Promise<string> {
  if (stdout === null) throw new Error('nothing can be heard')
  return String((await once(stdout, 'data'))[0]).trim()
}

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

test('another process is excluded, until the holder releases', async () => {
  const dataDir = tempFolder()
  const { child, says } = await holder(dataDir)
  expect(says).toBe('held')
  expect(lockJob(dataDir, 'job_a')).toBeNull()
  expect((await holder(dataDir)).says).toBe('refused')
  child.stdin?.write('release\n')
  expect(await nextLine(child)).toBe('released')
  const lock = lockJob(dataDir, 'job_a')
  expect(lock).not.toBeNull()
  lock?.release()
})

test('the lock of a process that was killed is gone with it', async () => {
  const dataDir = tempFolder()
  const { child } = await holder(dataDir)
  expect(lockJob(dataDir, 'job_a')).toBeNull()
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
  const lock = lockJob(dataDir, 'job_a')
  expect(lock).not.toBeNull()
  lock?.release()
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
