import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { acquireLock } from '../../src/db/file-lock.ts'
import { tempFolder } from '../support/database.ts'

const LOCK = join(import.meta.dirname, '../../src/db/file-lock.ts')
/** Takes a lock, says whether it has it, and sits on it until it is killed or told to let go. */
const HOLDER = `
  const { acquireLock } = await import(process.argv[1])
  const lock = acquireLock(process.argv[2], 'job_a')
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

test('another process is excluded, until the holder releases', async () => {
  const dataDir = tempFolder()
  const { child, says } = await holder(dataDir)
  expect(says).toBe('held')
  expect(acquireLock(dataDir, 'job_a')).toBeNull()
  expect((await holder(dataDir)).says).toBe('refused')
  child.stdin?.write('release\n')
  expect(await nextLine(child)).toBe('released')
  const lock = acquireLock(dataDir, 'job_a')
  expect(lock).not.toBeNull()
  lock?.release()
})

test('the lock of a process that was killed is gone with it', async () => {
  const dataDir = tempFolder()
  const { child } = await holder(dataDir)
  expect(acquireLock(dataDir, 'job_a')).toBeNull()
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
  const lock = acquireLock(dataDir, 'job_a')
  expect(lock).not.toBeNull()
  lock?.release()
})
