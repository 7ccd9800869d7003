import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import SqliteDatabase from 'better-sqlite3'
import { EvError, messageOf } from '../base/error.ts'

export type Lock = { release(): void }

/**
 * Takes the right to a thing, such as a job, so that no two processes work on it; null when another has it.
 * The lock is the operating system's, on an empty file of its own: it ends with the process, however that
 * ends. The file stays, or one who opened it just before would hold a lock that nobody else sees.
 */
export function lockJob(dataDir: string, name: string): Lock | null {
  const sqlite = openLockFile(join(dataDir, 'locks'), name)
  try {
    sqlite.exec('BEGIN EXCLUSIVE')
  } catch (error) {
    sqlite.close()
    if (String((error as { code?: unknown }).code).startsWith('SQLITE_BUSY')) return null
    throw unusable(dataDir, error)
  }
  return { release: () => void sqlite.close() }
}

function openLockFile(dir: string, name: string): SqliteDatabase.Database {
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 })
    return new SqliteDatabase(join(dir, `${name}.lock`), { timeout: 0 })
  } catch (error) {
    throw unusable(dir, error)
  }
}

const unusable = (dir: string, cause: unknown) =>
  new EvError(
    'io',
    `The data directory ${dir} cannot be used: ${messageOf(cause)}. Name another place with --data-dir.`,
    { cause },
  )
