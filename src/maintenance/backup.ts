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
import { acquireLock } from '../db/file-lock.ts'
import { EvError, errorMessage } from '../platform/error.ts'
import { OperationError } from '../platform/operation-error.ts'
import { type Encryption, encryptFile } from './age-file.ts'
import type { Contents } from './copy-file.ts'
import { runCopyProcess } from './copy-process.ts'
import { maintenanceError } from './errors.ts'
import { inspectDatabase } from './inspect.ts'
import { storeSecret } from './stored-secret.ts'

type BackupInput = {
  /** `sqlite:FILE` */
  readonly databaseUrl: string
  /** Absolute path of the copy. */
  readonly file: string
  /** Whether the copy may replace another file. */
  readonly force: boolean
  /** Null for a copy that is not encrypted and does not have the secret. */
  readonly encryption: Encryption | null
  /** The secret of the service, for an encrypted copy; null if there is none. */
  readonly secret: string | null
}

export type Backup = {
  readonly file: string
  readonly bytes: number
  readonly contents: Contents
  /** The file that was copied. */
  readonly database: string
  readonly isEncrypted: boolean
  readonly hasSecret: boolean
}

/**
 * Copies a consistent snapshot of a database file while other processes use it, and verifies the
 * copy. An encrypted copy also has the secret of the service. Throws `database_absent`,
 * `database_unusable`, `backup_of_itself`, `backup_exists` and `backup_failed`, and the reason of
 * `signal`; leaves no copy then.
 */
export async function backup(input: BackupInput, signal: AbortSignal): Promise<Backup> {
  const { databaseUrl, file, force, encryption } = input
  const database = usableFile(databaseUrl)
  if (existsSync(file)) {
    if (realpathSync(file) === realpathSync(database)) {
      throw maintenanceError('backup_of_itself', { file })
    }
    if (!force) throw maintenanceError('backup_exists', { file })
  }
  const partial = `${file}.partial`
  try {
    const contents =
      encryption === null
        ? await copyTo(partial, databaseUrl, signal)
        : await encryptTo(partial, database, { ...input, encryption }, signal)
    sync(partial)
    publish(partial, file, force)
    sync(dirname(file))
    const hasSecret = encryption !== null && input.secret !== null
    const bytes = statSync(file).size
    return { file, bytes, contents, database, isEncrypted: encryption !== null, hasSecret }
  } catch (error) {
    rmSync(partial, { force: true })
    signal.throwIfAborted()
    if (error instanceof EvError || error instanceof OperationError) throw error
    throw maintenanceError('backup_failed', { file, why: errorMessage(error) })
  }
}

function usableFile(databaseUrl: string): string {
  const info = inspectDatabase(databaseUrl)
  const { file } = info
  if (info.kind === 'absent') throw maintenanceError('database_absent', { file, task: 'backup' })
  if (info.kind !== 'unusable') return file
  throw maintenanceError('database_unusable', { file, why: info.why })
}

function copyTo(target: string, databaseUrl: string, signal: AbortSignal): Promise<Contents> {
  createEmpty(target)
  return runCopyProcess({ file: target, databaseUrl }, signal)
}

/**
 * Copies the database to a file beside it, where it is as safe as the database and the secret are,
 * and encrypts that file. A file that a killed process left there is replaced.
 */
async function encryptTo(
  target: string,
  database: string,
  { databaseUrl, secret, encryption }: BackupInput & { readonly encryption: Encryption },
  signal: AbortSignal,
): Promise<Contents> {
  const lock = acquireLock(dirname(database), 'backup')
  if (lock === null) throw alreadyRunning(database)
  const plain = `${database}.backup`
  try {
    const contents = await copyTo(plain, databaseUrl, signal)
    if (secret !== null) storeSecret(plain, secret)
    rmSync(target, { force: true })
    await encryptFile(plain, target, encryption, signal)
    return contents
  } finally {
    rmSync(plain, { force: true })
    lock.release()
  }
}

const alreadyRunning = (database: string) =>
  new EvError(
    'io',
    `Another "ev backup" is copying ${database}. Wait for it to finish, or stop it first.`,
  )

/** Creates an empty file that only the owner can read: the copy contains addresses. */
function createEmpty(file: string): void {
  rmSync(file, { force: true })
  closeSync(openSync(file, 'wx', 0o600))
}

/** Waits until a file or a directory is on the disk. */
export function sync(path: string): void {
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
    if (code === 'EEXIST' || existsSync(file)) throw maintenanceError('backup_exists', { file })
    // Some file systems have no hard links.
    renameSync(partial, file)
  }
}
