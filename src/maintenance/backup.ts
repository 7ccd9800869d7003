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
import { EvError, errorMessage } from '../platform/error.ts'
import { OperationError } from '../platform/operation-error.ts'
import { type Contents, contentsOf, copyFile } from './backup-copy.ts'
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
