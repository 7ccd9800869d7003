import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { ensureSetting } from '../cluster/cluster-settings.ts'
import { type Database, openDatabase } from '../db/database.ts'
import { acquireLock, isLocked, type Lock, SERVE_LOCK } from '../db/file-lock.ts'
import { fingerprint, needsSecret, readSecret, type SecretLocation } from '../db/service-secret.ts'
import type { Clock } from '../platform/clock.ts'
import { OperationError } from '../platform/operation-error.ts'
import type { Random } from '../platform/random.ts'
import { type Copied, type CopyProgress, copyDatabase } from './copy-data.ts'
import { inspectDatabase } from './inspect.ts'

type MigrateInput = {
  /** `sqlite:FILE` URL of the service. */
  readonly from: string
  /** URL of an empty PostgreSQL database. */
  readonly to: string
  /** Secret of the service; the copy keeps it. */
  readonly place: SecretLocation
  readonly onProgress: (progress: CopyProgress) => void
}

/**
 * Copies the database of a service to PostgreSQL, all or nothing. Throws `data_dir_in_use` while
 * `ev serve` or `ev bulk` uses it, and `database_absent`, `database_unusable` and `database_newer`.
 */
export async function migrate(
  services: { readonly clock: Clock; readonly random: Random },
  input: MigrateInput,
): Promise<Copied> {
  const { dataDir } = input.place
  requireUsable(input.from)
  const lock = lockDataDir(dataDir)
  try {
    return await copy(services, input)
  } finally {
    lock.release()
  }
}

async function copy(
  { clock, random }: { readonly clock: Clock; readonly random: Random },
  { from, to, place, onProgress }: MigrateInput,
): Promise<Copied> {
  const opened: Database[] = []
  const open = async (url: string) => {
    const database = await openDatabase(url, clock)
    opened.push(database)
    return database
  }
  try {
    const target = await open(to)
    const copied = await copyDatabase(await open(from), target, onProgress)
    // A service with another secret is refused from now on, as it could not decrypt signing
    // secrets.
    if (!needsSecret(place))
      await ensureSetting(target, 'secret-mark', fingerprint(readSecret(place, random)))
    return copied
  } finally {
    await Promise.all(opened.map(database => database.close()))
  }
}

function requireUsable(url: string): void {
  const info = inspectDatabase(url)
  const { file } = info
  if (info.kind === 'absent') throw new OperationError('database_absent', { file, task: 'migrate' })
  if (info.kind === 'newer') throw new OperationError('database_newer', { file })
  if (info.kind === 'unusable') {
    throw new OperationError('database_unusable', { file, why: info.why })
  }
}

/** Locks a data directory against services. Throws `data_dir_in_use`. */
function lockDataDir(dataDir: string): Lock {
  const lock = acquireLock(dataDir, SERVE_LOCK)
  if (lock === null) throw new OperationError('data_dir_in_use', { dataDir, command: 'serve' })
  if (!hasActiveList(dataDir)) return lock
  lock.release()
  throw new OperationError('data_dir_in_use', { dataDir, command: 'bulk' })
}

function hasActiveList(dataDir: string): boolean {
  const locks = join(dataDir, 'locks')
  const names = existsSync(locks) ? readdirSync(locks) : []
  return names
    .filter(name => /^list_.+\.lock$/.test(name))
    .some(name => isLocked(dataDir, name.replace(/\.lock$/, '')))
}
