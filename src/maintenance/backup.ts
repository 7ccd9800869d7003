import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { dirname } from 'node:path'
import SqliteDatabase from 'better-sqlite3'
import { isPostgresUrl } from '../db/database.ts'
import { EvError, errorMessage } from '../platform/error.ts'
import { OperationError } from '../platform/operation-error.ts'
import { inspectDatabase } from './inspect.ts'

export type BackupInput = {
  /** `sqlite:FILE` */
  readonly databaseUrl: string
  /** Absolute path of the copy. */
  readonly file: string
  /** Whether the copy may replace another file. */
  readonly force: boolean
}

export type Backup = {
  readonly file: string
  readonly bytes: number
  readonly contents: Contents
  /** The file that was copied. */
  readonly database: string
}

/**
 * Copies a database file as it stands at one moment, while others go on with it, and reads the copy once. Throws
 * `database_absent`, `database_unusable`, `backup_of_itself`, `backup_exists` and `backup_failed`; then there is no copy.
 */
export function backup({ databaseUrl, file, force }: BackupInput): Backup {
  const database = usableFile(databaseUrl)
  if (existsSync(file)) {
    if (realpathSync(file) === realpathSync(database)) {
      throw new OperationError('backup_of_itself', { file })
    }
    if (!force) throw new OperationError('backup_exists', { file })
  }
  const partial = `${file}.partial`
  try {
    makeEmpty(partial)
    copyFile(databaseUrl, partial)
    sync(partial)
    const contents = contentsOf(partial)
    place(partial, file, force)
    sync(dirname(file))
    return { file, bytes: statSync(file).size, contents, database }
  } catch (error) {
    rmSync(partial, { force: true })
    if (error instanceof EvError || error instanceof OperationError) throw error
    throw new OperationError('backup_failed', { file, why: errorMessage(error) })
  }
}

function usableFile(databaseUrl: string): string {
  const look = inspectDatabase(databaseUrl)
  const { file } = look
  if (look.kind === 'absent') throw new OperationError('database_absent', { file, task: 'backup' })
  if (look.kind !== 'unusable') return file
  throw new OperationError('database_unusable', { file, why: look.why })
}

/** For nobody else to read: there are addresses in it. */
function makeEmpty(file: string): void {
  rmSync(file, { force: true })
  closeSync(openSync(file, 'wx', 0o600))
}

function sync(path: string): void {
  const descriptor = openSync(path, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}

/** Gives the copy its name at once, and takes no other file's, not even one that was made just now. */
function place(partial: string, file: string, force: boolean): void {
  if (force) {
    renameSync(partial, file)
    return
  }
  try {
    linkSync(partial, file)
    rmSync(partial)
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    if (code === 'EEXIST' || existsSync(file)) throw new OperationError('backup_exists', { file })
    // Some file systems know no second name for a file.
    renameSync(partial, file)
  }
}

/** What a database holds. */
type Contents = {
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
