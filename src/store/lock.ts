import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import SqliteDatabase from 'better-sqlite3'

export type Lock = { release(): void }

/**
 * Takes the right to work on a job, so that no two processes do; null when another has it. The lock is
 * the operating system's, on a file of its own: it ends with the process, however that ends.
 */
export function lockJob(dataDir: string, jobId: string): Lock | null {
  const dir = join(dataDir, 'locks')
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  const file = join(dir, `${jobId}.lock`)
  const sqlite = new SqliteDatabase(file, { timeout: 0 })
  try {
    sqlite.exec('BEGIN EXCLUSIVE')
  } catch {
    sqlite.close()
    return null
  }
  return {
    release() {
      sqlite.close()
      rmSync(file, { force: true })
    },
  }
}
