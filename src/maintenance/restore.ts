import {
  chownSync,
  closeSync,
  copyFileSync,
  existsSync,
  linkSync,
  openSync,
  readdirSync,
  readSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import SqliteDatabase from 'better-sqlite3'
import { openDatabase } from '../db/database.ts'
import {
  acquireLock,
  databaseLock,
  type Lock,
  refuseHardLinks,
  SERVE_LOCK,
} from '../db/file-lock.ts'
import {
  canDecrypt,
  findSecret,
  type SecretLocation,
  secretPath,
  writeSecret,
} from '../db/service-secret.ts'
import type { Clock } from '../platform/clock.ts'
import { createDirectory } from '../platform/directory.ts'
import { EvError, errorMessage } from '../platform/error.ts'
import { isoTime } from '../platform/format.ts'
import type { Random } from '../platform/random.ts'
import { createSecretBox } from '../platform/secret-box.ts'
import { type DecryptionKey, decryptFile } from './age-file.ts'
import { sync } from './backup.ts'
import type { Contents } from './copy-file.ts'
import { runCopyProcess } from './copy-process.ts'
import { inspectDatabase } from './inspect.ts'
import { takeSecret } from './stored-secret.ts'

type RestoreInput = {
  /** Absolute path of the backup, which exists. */
  readonly file: string
  /** Absolute path of the database. */
  readonly database: string
  readonly place: SecretLocation
  /** Decrypts the backup; null for one that is not encrypted. */
  readonly key: DecryptionKey | null
  /** Whether to replace a database, and a different secret, that exist. */
  readonly force: boolean
  /** Whether to restore a database whose webhook secrets cannot be decrypted. */
  readonly withoutSecret: boolean
}

export type Restored = {
  readonly database: string
  readonly contents: Contents
  /** Where the earlier database is kept; null if there was none. */
  readonly kept: string | null
  /** The file of the restored secret; null if the secret was not changed. */
  readonly secretFile: string | null
  /** Where the earlier secret is kept; null if there was none, or if it was not changed. */
  readonly keptSecret: string | null
}

/**
 * Restores a database from a backup of `ev backup`. In this order:
 *
 * 1. Locks the data directory and the database against all other processes.
 * 2. Decrypts or copies the backup to a file beside the database.
 * 3. Checks its integrity and version, takes the secret out of it, migrates it to this version, and
 *    checks that the secret decrypts what it contains.
 * 4. Links the earlier database to another name, writes the secret, and renames the new database to
 *    its place. The rename is atomic: a killed restore leaves the earlier database or the new one.
 *
 * Throws EvError, and the reason of `signal` until step 4. Nothing has changed then.
 */
export async function restore(
  services: { readonly clock: Clock; readonly random: Random },
  input: RestoreInput,
  signal: AbortSignal,
): Promise<Restored> {
  const { database, force, file } = input
  refuseItself(file, database)
  prepareDirectories(input)
  removeOwnLinks(database)
  refuseHardLinks(database)
  const lock = lockPlaces(input)
  let present: SqliteDatabase.Database | null = null
  const partial = `${database}.restore`
  try {
    if (existsSync(database) && !force) throw databaseExists(database)
    present = lockPresent(database)
    removeDatabase(partial)
    const { contents, secret } = await unpack(input, partial, signal)
    const place = placeSecret(input, secret)
    await migrateCopy(services, input, { partial, secret: secret ?? place.present })
    signal.throwIfAborted()
    const suffix = `.replaced-${isoTime(services.clock.now()).replaceAll(':', '-')}`
    giveToOwner(partial)
    const kept = keep(database, suffix)
    const keptSecret = place.write ? replaceSecret(place.file, place.write, suffix) : null
    renameSync(partial, database)
    sync(dirname(database))
    const secretFile = place.write === null ? null : place.file
    return { database, contents, kept, secretFile, keptSecret }
  } catch (error) {
    signal.throwIfAborted()
    throw error instanceof EvError ? error : notRestored(file, database, error)
  } finally {
    present?.close()
    removeDatabase(partial)
    lock.release()
  }
}

function refuseItself(file: string, database: string): void {
  if (existsSync(database) && realpathSync(file) === realpathSync(database)) {
    throw new EvError('usage', `${file} is the database itself. Name a backup of it.`)
  }
}

function prepareDirectories({ database, place }: RestoreInput): void {
  for (const directory of [place.dataDir, dirname(database)]) {
    try {
      createDirectory(directory)
    } catch (cause) {
      throw new EvError(
        'io',
        `The directory ${directory} cannot be created: ${errorMessage(cause)}. Set another one with --data-dir.`,
        { cause },
      )
    }
  }
}

/** The earlier database has two names if a restore was killed just before its rename. */
function removeOwnLinks(database: string): void {
  const inode = statSync(database, { throwIfNoEntry: false })?.ino
  const folder = dirname(database)
  for (const name of readdirSync(folder)) {
    const path = join(folder, name)
    const isOurs = name.startsWith(`${basename(database)}.replaced-`)
    if (isOurs && inode !== undefined && statSync(path).ino === inode) rmSync(path)
  }
}

/** Locks a data directory and a database against services. Throws EvError('io'). */
function lockPlaces({ database, place }: RestoreInput): Lock {
  const locks: Lock[] = []
  const release = () => {
    for (const lock of locks) lock.release()
  }
  for (const [directory, name] of [[place.dataDir, SERVE_LOCK] as const, databaseLock(database)]) {
    const lock = acquireLock(directory, name)
    if (lock === null) {
      release()
      throw inUse(database)
    }
    locks.push(lock)
  }
  return { release }
}

/**
 * Locks the earlier database against all processes, and moves the contents of its journal into it:
 * SQLite leaves the WAL mode only if no other connection is open. Returns null if there is no
 * database, or if it is damaged.
 */
function lockPresent(database: string): SqliteDatabase.Database | null {
  if (!existsSync(database)) return null
  let sqlite: SqliteDatabase.Database | null = null
  try {
    sqlite = new SqliteDatabase(database, { timeout: LOCK_WAIT_MS })
    const mode = sqlite.pragma('journal_mode = delete', { simple: true })
    if (mode !== 'delete') throw inUse(database)
    sqlite.exec('begin exclusive')
    return sqlite
  } catch (error) {
    sqlite?.close()
    const code = String((error as { code?: unknown }).code)
    if (error instanceof EvError) throw error
    if (/^SQLITE_(BUSY|LOCKED)/.test(code)) throw inUse(database)
    return null
  }
}

/** Short commands hold their locks for less. */
const LOCK_WAIT_MS = 500

type Unpacked = { readonly contents: Contents; readonly secret: string | null }

/** Decrypts or copies the backup, checks it, and takes the secret out of the copy. */
async function unpack(
  { file, key }: RestoreInput,
  partial: string,
  signal: AbortSignal,
): Promise<Unpacked> {
  if (key !== null) await decryptFile(file, partial, key, signal)
  if (!isSqlite(key === null ? file : partial)) throw notABackup(file)
  if (key === null) createEmpty(partial)
  const copy = { file: partial, databaseUrl: key === null ? `sqlite:${file}` : null }
  const contents = await runCopyProcess(copy, signal).catch(error => {
    throw toDamaged(file, error)
  })
  requireVersion(file, partial)
  return { contents, secret: takeSecret(partial) }
}

/** Returns the error for a backup whose database is damaged; other errors stay as they are. */
function toDamaged(file: string, error: unknown): unknown {
  const isCorrupt = /^SQLITE_(CORRUPT|NOTADB)/.test(`${(error as { code?: unknown }).code}`)
  const hasFailedCheck = error instanceof EvError && error.code === 'io'
  if (!isCorrupt && !hasFailedCheck) return error
  return new EvError('bad_input', `${file} is damaged. Use another backup.`, { cause: error })
}

const notRestored = (file: string, database: string, cause: unknown) =>
  new EvError(
    'io',
    `${file} cannot be restored: ${errorMessage(cause)}. Check that ${dirname(database)} is writable and has enough space. Nothing was changed.`,
    { cause },
  )

function requireVersion(file: string, partial: string): void {
  const info = inspectDatabase(`sqlite:${partial}`)
  if (info.kind === 'usable') return
  if (info.kind === 'newer') {
    throw new EvError('io', `${file} was written by a newer version of ev. Use that version.`)
  }
  throw notABackup(file)
}

/** The first bytes of a SQLite file. */
const SQLITE_MAGIC = 'SQLite format 3\0'

function isSqlite(file: string): boolean {
  const start = Buffer.alloc(SQLITE_MAGIC.length)
  const descriptor = openSync(file, 'r')
  try {
    readSync(descriptor, start, 0, start.length, 0)
  } finally {
    closeSync(descriptor)
  }
  return start.toString('latin1') === SQLITE_MAGIC
}

/** Creates an empty file that only its owner can read. */
const createEmpty = (file: string) => closeSync(openSync(file, 'wx', 0o600))

type SecretPlace = {
  readonly file: string
  /** The secret of this machine; null if it has none. */
  readonly present: string | null
  /** The secret to write; null if there is nothing to write. */
  readonly write: string | null
}

/** Decides whether the secret of the backup is written. Throws EvError if it must not be. */
function placeSecret({ place, force }: RestoreInput, secret: string | null): SecretPlace {
  const file = secretPath(place)
  const isMissing = place.secret === null && !existsSync(file)
  const present = isMissing ? null : findSecret(place)
  if (secret === null || secret === present) return { file, present, write: null }
  if (present === null || (force && place.secret === null)) return { file, present, write: secret }
  throw new EvError(
    'bad_config',
    place.secret === null
      ? `The secret in ${file} is not the secret of the backup. To replace it, add --force: ev keeps the earlier file.`
      : 'EV_SECRET is not the secret of the backup, which decrypts its webhook secrets. Remove EV_SECRET from the environment or the config file, so that ev stores the secret of the backup in the data directory.',
  )
}

type Copy = {
  readonly partial: string
  /** The secret that will apply; null if there is none. */
  readonly secret: string | null
}

/** Migrates the copy to this version, and checks that the secret decrypts what it contains. */
async function migrateCopy(
  { clock, random }: { readonly clock: Clock; readonly random: Random },
  { file, withoutSecret }: RestoreInput,
  { partial, secret }: Copy,
): Promise<void> {
  const database = await openDatabase(`sqlite:${partial}`, clock)
  try {
    // Without a secret, another one tells whether there is anything to decrypt.
    const secretBox = createSecretBox(secret ?? random.token(SECRET_LENGTH), random)
    if (!withoutSecret && !(await canDecrypt(database, secretBox))) throw undecryptable(file)
  } finally {
    await database.close()
  }
  const sqlite = new SqliteDatabase(partial)
  sqlite.pragma('journal_mode = delete')
  sqlite.close()
  sync(partial)
}

const SECRET_LENGTH = 50

const undecryptable = (file: string) =>
  new EvError(
    'bad_config',
    `${file} does not have the secret that decrypts its webhook secrets, and this machine does not have it either. Set EV_SECRET or --secret-file to the secret of the service that was backed up, or copy its file "secret" into the data directory. ` +
      'If the secret is lost, add --without-secret, and give each webhook a new one with "ev webhooks rotate".',
  )

/** Gives the earlier database a second name, with its journal. Returns it; null if there is none. */
function keep(database: string, suffix: string): string | null {
  const journals = ['-wal', '-shm', '-journal']
  const kept = existsSync(database) ? `${database}${suffix}` : null
  if (kept !== null) linkOrCopy(database, kept)
  for (const ending of journals.filter(one => existsSync(`${database}${one}`))) {
    // SQLite would apply the journal of a damaged or deleted database to the new one.
    if (kept === null) rmSync(`${database}${ending}`)
    else renameSync(`${database}${ending}`, `${kept}${ending}`)
  }
  return kept
}

function linkOrCopy(from: string, to: string): void {
  try {
    linkSync(from, to)
  } catch {
    // Some file systems have no hard links.
    copyFileSync(from, to)
    sync(to)
  }
}

/** Writes the secret, and returns where the earlier one is kept; null if there was none. */
function replaceSecret(file: string, secret: string, suffix: string): string | null {
  const partial = `${file}.restore`
  rmSync(partial, { force: true })
  writeSecret(partial, secret)
  giveToOwner(partial)
  const kept = existsSync(file) ? `${file}${suffix}` : null
  if (kept !== null) linkOrCopy(file, kept)
  renameSync(partial, file)
  sync(dirname(file))
  return kept
}

/** Root restores the data of a service that runs as another user: its folder belongs to that user. */
function giveToOwner(file: string): void {
  if (process.getuid?.() !== 0) return
  const { uid, gid } = statSync(dirname(file))
  chownSync(file, uid, gid)
}

function removeDatabase(file: string): void {
  for (const ending of ['', '-wal', '-shm', '-journal']) rmSync(`${file}${ending}`, { force: true })
}

const databaseExists = (database: string) =>
  new EvError(
    'cannot_write',
    `The database ${database} already exists. To replace it, add --force: ev keeps the earlier one beside it. To restore elsewhere, set --data-dir.`,
  )

const inUse = (database: string) =>
  new EvError(
    'io',
    `The database ${database} is in use. Stop "ev serve" and every other ev process that uses it, and try again.`,
  )

const notABackup = (file: string) =>
  new EvError(
    'bad_input',
    `${file} is not a backup of ev. It takes a file that "ev backup" has written.`,
  )
