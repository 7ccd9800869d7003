import { existsSync } from 'node:fs'
import SqliteDatabase from 'better-sqlite3'
import { fileOf, isPostgresUrl } from '../db/database-url.ts'
import { EvError, errorMessage } from '../platform/error.ts'

/** Row counts of a database. */
export type Contents = {
  readonly accounts: number
  readonly keys: number
  readonly webhooks: number
  readonly lists: number
  readonly rows: number
  readonly verifications: number
  readonly answers: number
}

/**
 * Copies a consistent snapshot of the database of a `sqlite:FILE` URL into `target`, an empty file.
 * Other processes may write at the same time: VACUUM INTO is one read transaction, while the backup
 * API of SQLite restarts with each of their commits and would not finish beside a busy service.
 * Blocks the event loop.
 */
export function copyFile(url: string, target: string): void {
  if (isPostgresUrl(url)) throw notAFile()
  const sqlite = new SqliteDatabase(fileOf(url), { readonly: true })
  try {
    sqlite.prepare('vacuum into ?').run(target)
  } finally {
    sqlite.close()
  }
}

const notAFile = () =>
  new EvError(
    'usage',
    'A PostgreSQL database cannot be copied as a file. Use pg_dump, or the backups of your database provider.',
  )

/** Checks the integrity of a copy and returns its row counts; throws if it is damaged. */
export function contentsOf(file: string): Contents {
  if (!existsSync(file)) throw damaged(file, 'it does not exist')
  const sqlite = new SqliteDatabase(file, { readonly: true })
  try {
    const result = sqlite.pragma('integrity_check(1)', { simple: true })
    if (result !== 'ok') throw damaged(file, String(result))
    const tables = sqlite
      .prepare("select name from sqlite_master where type = 'table'")
      .pluck()
      .all()
    // A database of an earlier version may lack tables: backups are made before migrations too.
    const count = (table: string, where = '') =>
      tables.includes(table)
        ? (sqlite.prepare(`select count(*) from ${table} ${where}`).pluck().get() as number)
        : 0
    const columns = sqlite.prepare("select name from pragma_table_info('webhook')").pluck().all()
    return {
      accounts: count('account'),
      keys: count('api_key', 'where revoked_at is null'),
      webhooks: count('webhook', columns.includes('deleted_at') ? 'where deleted_at is null' : ''),
      lists: count('job'),
      rows: count('item'),
      verifications: count('verification'),
      answers: count('answer'),
    }
  } catch (error) {
    throw error instanceof EvError ? error : damaged(file, errorMessage(error))
  } finally {
    sqlite.close()
  }
}

const damaged = (file: string, why: string) =>
  new EvError('io', `The copy ${file} is damaged: ${why}. Check the disk, and try again.`)
