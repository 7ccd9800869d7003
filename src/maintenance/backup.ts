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

type BackupInput = {
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
 * Copies a consistent snapshot of a database file while other processes use it, and verifies the
 * copy. Throws `database_absent`, `database_unusable`, `backup_of_itself`, `backup_exists` and
 * `backup_failed`, and leaves no copy then.
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
    createEmpty(partial)
    copyFile(databaseUrl, partial)
    sync(partial)
    const contents = contentsOf(partial)
    publish(partial, file, force)
    sync(dirname(file))
    return { file, bytes: statSync(file).size, contents, database }
  } catch (error) {
    rmSync(partial, { force: true })
    if (error instanceof EvError || error instanceof OperationError) throw error
    throw new OperationError('backup_failed', { file, why: errorMessage(error) })
  }
}

function usableFile(databaseUrl: string): string {
  const info = inspectDatabase(databaseUrl)
  const { file } = info
  if (info.kind === 'absent') throw new OperationError('database_absent', { file, task: 'backup' })
  if (info.kind !== 'unusable') return file
  throw new OperationError('database_unusable', { file, why: info.why })
}

/** Creates an empty file that only the owner can read: the copy contains addresses. */
function createEmpty(file: string): void {
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

/** Moves the copy into place atomically. Without `force` it never replaces a file. */
function publish(partial: string, file: string, force: boolean): void {
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
    // Some file systems have no hard links.
    renameSync(partial, file)
  }
}

/** Row counts of a database. */
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
 * Copies a consistent snapshot of the database of a `sqlite:FILE` URL into `target`, an empty file.
 * Other processes may write meanwhile: VACUUM INTO is one read transaction, while the backup API of
 * SQLite restarts with each of their commits and would not finish beside a busy service. Blocks the
 * event loop.
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
