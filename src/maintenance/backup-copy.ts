import { existsSync } from 'node:fs'
import SqliteDatabase from 'better-sqlite3'
import { isPostgresUrl } from '../db/database.ts'
import { EvError, errorMessage } from '../platform/error.ts'

/** What a database holds. */
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
 * Copies the database of a `sqlite:FILE` URL as it stands at one moment into `target`, an empty file. Others go on
 * writing meanwhile: this is one long reading, while the backup API of SQLite begins anew with each of their
 * commits and never ends beside a busy service. Waits for the disk without letting anything else run.
 */
export function copyFile(url: string, target: string): void {
  if (isPostgresUrl(url)) throw notAFile()
  const sqlite = new SqliteDatabase(url.replace(/^sqlite:/, ''), { readonly: true })
  try {
    sqlite.prepare('vacuum into ?').run(target)
  } finally {
    sqlite.close()
  }
}

const notAFile = () =>
  new EvError(
    'usage',
    'A database on a PostgreSQL server is no file that could be copied. Use pg_dump, or the backups of whoever runs the server.',
  )

/** Reads all of a copy and tells what is in it; throws when it is damaged. */
export function contentsOf(file: string): Contents {
  if (!existsSync(file)) throw damaged(file, 'it is not there')
  const sqlite = new SqliteDatabase(file, { readonly: true })
  try {
    const said = sqlite.pragma('integrity_check(1)', { simple: true })
    if (said !== 'ok') throw damaged(file, String(said))
    const tables = sqlite
      .prepare("select name from sqlite_master where type = 'table'")
      .pluck()
      .all()
    // One that an earlier ev made may not have them all: a copy is made before tables are brought up to date, too.
    const count = (table: string, which = '') =>
      tables.includes(table)
        ? (sqlite.prepare(`select count(*) from ${table} ${which}`).pluck().get() as number)
        : 0
    const marks = sqlite.prepare("select name from pragma_table_info('webhook')").pluck().all()
    return {
      accounts: count('account'),
      keys: count('api_key', 'where revoked_at is null'),
      webhooks: count('webhook', marks.includes('deleted_at') ? 'where deleted_at is null' : ''),
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
  new EvError(
    'io',
    `The copy ${file} is damaged: ${why}. Look whether the disk is well, and try again.`,
  )
