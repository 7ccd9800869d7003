import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import SqliteDatabase from 'better-sqlite3'
import { EvError, errorMessage } from '../platform/error.ts'

export type Lock = { release(): void }

/**
 * Takes the right to a thing, such as a job, so that no two processes work on it; null when another has it.
 * The lock is the operating system's, on an empty file of its own: it ends with the process, however that
 * ends. The file stays, or one who opened it just before would hold a lock that nobody else sees.
 */
export function acquireLock(dataDir: string, name: string): Lock | null {
  const sqlite = openLockFile(join(dataDir, 'locks'), name)
  try {
    // Nothing is ever written, so a lock can be had, or looked at, where the disk has no room for a journal.
    sqlite.pragma('journal_mode = memory')
    sqlite.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    sqlite.close()
    if (String((error as { code?: unknown }).code).startsWith('SQLITE_BUSY')) return null
    throw unusable(dataDir, error)
  }
  return { release: () => void sqlite.close() }
}

/** Whether a process has it just now. */
export function isLocked(dataDir: string, name: string): boolean {
  if (!existsSync(lockFile(join(dataDir, 'locks'), name))) return false
  const lock = acquireLock(dataDir, name)
  lock?.release()
  return lock === null
}

/** The name of the lock that keeps two processes off one list. */
export const jobLockName = (sourceKey: string) => `list_${sourceKey}`

/** The name of the lock that keeps two services off one data directory. */
export const SERVE_LOCK = 'serve'

/** Who only looks whether a lock is held takes it for a moment, which must not turn away who wants it. */
const MOMENT_MS = 50

function openLockFile(dir: string, name: string): SqliteDatabase.Database {
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 })
    return new SqliteDatabase(lockFile(dir, name), { timeout: MOMENT_MS })
  } catch (error) {
    throw unusable(dir, error)
  }
}

const lockFile = (dir: string, name: string) => join(dir, `${name}.lock`)

const unusable = (dir: string, cause: unknown) =>
  new EvError(
    'io',
    `The data directory ${dir} cannot be used: ${errorMessage(cause)}. Name another place with --data-dir.`,
    { cause },
  )
