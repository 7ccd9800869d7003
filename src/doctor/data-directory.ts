import { access, constants, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { isPostgresUrl } from '../db/database.ts'
import { inspectDatabase } from '../maintenance/inspect.ts'
import { errorMessage } from '../platform/error.ts'
import { type Finding, fail, ok, warn } from './finding.ts'

/** Checks that the data directory is writable and private, and that its database is usable. */
export async function dataDirectoryFinding(dataDir: string, databaseUrl: string): Promise<Finding> {
  const error = await accessError(dataDir)
  if (error !== null) {
    return fail(
      `cannot use ${dataDir}: ${error}`,
      'Fix the permissions, or set a writable directory with --data-dir.',
    )
  }
  const inspection = isPostgresUrl(databaseUrl) ? ON_SERVER : inspectDatabase(databaseUrl)
  if (inspection.kind === 'unusable') {
    return fail(
      `cannot use the database ${inspection.file}: ${inspection.why}`,
      'If the file is damaged or not an ev database, move it away, or set another directory with --data-dir.',
    )
  }
  if (inspection.kind === 'newer') {
    return fail(
      `the database ${inspection.file} was written by a newer version of ev`,
      'Upgrade ev to that version.',
    )
  }
  if (await othersMayRead(dataDir)) {
    return warn(
      `other users of this machine can read ${dataDir}, which contains your lists`,
      `Run: chmod 700 ${dataDir}`,
    )
  }
  return ok(
    inspection.kind === 'absent' ? `${dataDir} is usable and empty` : `${dataDir} is usable`,
  )
}

/** A database on a server has its own check. */
const ON_SERVER = { kind: 'usable', file: '' } as const

/** Returns the directory itself, or its nearest parent that exists. */
export async function nearestFolder(path: string): Promise<string> {
  const exists = await stat(path).then(
    stats => stats.isDirectory(),
    () => false,
  )
  return exists || dirname(path) === path ? path : nearestFolder(dirname(path))
}

async function accessError(dataDir: string): Promise<string | null> {
  const stats = await stat(dataDir).catch(() => null)
  if (stats !== null && !stats.isDirectory()) return 'it is a file'
  const folder = await nearestFolder(dataDir)
  try {
    // Throws ENOTDIR if a parent in the path is a file.
    await stat(dataDir).catch(error => {
      if (error.code !== 'ENOENT') throw error
    })
    await access(folder, constants.W_OK | constants.X_OK)
    return null
  } catch (error) {
    return errorMessage(error)
  }
}

/** The file mode is meaningless on Windows. */
async function othersMayRead(dataDir: string): Promise<boolean> {
  const stats = await stat(dataDir).catch(() => null)
  return process.platform !== 'win32' && stats !== null && (stats.mode & 0o077) !== 0
}
