import { existsSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import SqliteDatabase from 'better-sqlite3'
import { canonicalPath, createDirectory } from '../platform/directory.ts'
import { EvError, errorMessage } from '../platform/error.ts'

export type Lock = { release(): void }

/**
 * Acquires an exclusive lock, such as on a job, across processes; returns null if another process
 * holds it. The operating system holds the lock on an empty file and releases it when the process
 * ends, even by a crash. The file is never deleted: a process that has just opened it would hold a
 * lock on a deleted file, which no other process could see.
 */
export function acquireLock(dataDir: string, name: string): Lock | null {
  const sqlite = openLockFile(join(dataDir, 'locks'), name)
  try {
    // Nothing is ever written, so locks work even if the disk has no space for a journal.
    sqlite.pragma('journal_mode = memory')
    sqlite.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    sqlite.close()
    if (String((error as { code?: unknown }).code).startsWith('SQLITE_BUSY')) return null
    throw unusable(dataDir, error)
  }
  return { release: () => void sqlite.close() }
}

/** Whether a process holds the lock. */
export function isLocked(dataDir: string, name: string): boolean {
  if (!existsSync(lockFile(join(dataDir, 'locks'), name))) return false
  const lock = acquireLock(dataDir, name)
  lock?.release()
  return lock === null
}

/** A lock by its folder and name. */
export type LockPlace = readonly [dataDir: string, name: string]

/** Name of the lock that prevents two services from sharing one data directory. */
export const SERVE_LOCK = 'serve'

/**
 * The lock that prevents two services from sharing one SQLite file: beside the file, whatever data
 * directory, symbolic link or relative path each of them has.
 */
export function databaseLock(file: string): LockPlace {
  const path = canonicalPath(file)
  return [dirname(path), `${SERVE_LOCK}_${basename(path)}`]
}

/**
 * The lock that prevents two processes from working on one list. It belongs to the SQLite file, as
 * the list does; a database without a file has it in the data directory.
 */
export function jobLock(file: string | null, dataDir: string, sourceKey: string): LockPlace {
  if (file === null) return [dataDir, `list_${sourceKey}`]
  const path = canonicalPath(file)
  const name = basename(path)
  return [dirname(path), `list_${name === DEFAULT_NAME ? '' : `${name}_`}${sourceKey}`]
}

/** Several databases can be in one folder; the locks of this one have no prefix. */
const DEFAULT_NAME = 'ev.sqlite'

/**
 * Throws if a SQLite file has further names (hard links): SQLite keeps a journal beside the name
 * that it opened, so processes that open different names do not see each other and destroy the file.
 */
export function refuseHardLinks(file: string): void {
  const links = statSync(file, { throwIfNoEntry: false })?.nlink ?? 1
  if (links <= 1) return
  throw new EvError(
    'io',
    `The database ${file} has ${links} names (hard links). SQLite keeps a journal for each name, so processes that use different ones would destroy the data. Find them with "find / -samefile ${file}", and delete all but one.`,
  )
}

/** `isLocked` holds the lock for a moment: `acquireLock` waits this long before it gives up. */
const LOCK_WAIT_MS = 50

function openLockFile(dir: string, name: string): SqliteDatabase.Database {
  try {
    createDirectory(dir)
    return new SqliteDatabase(lockFile(dir, name), { timeout: LOCK_WAIT_MS })
  } catch (error) {
    throw unusable(dir, error)
  }
}

const lockFile = (dir: string, name: string) => join(dir, `${name}.lock`)

const unusable = (dir: string, cause: unknown) =>
  new EvError(
    'io',
    `The data directory ${dir} cannot be used: ${errorMessage(cause)}. Choose another directory with --data-dir.`,
    { cause },
  )
