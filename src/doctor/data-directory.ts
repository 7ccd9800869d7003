import { access, constants, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { isPostgresUrl } from '../db/database.ts'
import { inspectDatabase } from '../maintenance/inspect.ts'
import { errorMessage } from '../platform/error.ts'
import { type Finding, fail, ok, warn } from './finding.ts'

/** Whether jobs can be kept: the folder can be made or written, is ours alone, and holds a database that we can read. */
export async function dataDirectoryFinding(dataDir: string, databaseUrl: string): Promise<Finding> {
  const blocked = await reasonAgainst(dataDir)
  if (blocked !== null) {
    return fail(
      `${dataDir} cannot be used: ${blocked}`,
      'Name a folder that you may write with --data-dir, or set that right.',
    )
  }
  const look = isPostgresUrl(databaseUrl) ? ELSEWHERE : inspectDatabase(databaseUrl)
  if (look.kind === 'unusable') {
    return fail(
      `the database ${look.file} cannot be used: ${look.why}`,
      'Move the file away if it is damaged or not ours, or name another place with --data-dir.',
    )
  }
  if (look.kind === 'newer') {
    return fail(
      `the database ${look.file} was written by a newer version of ev`,
      'Use that version.',
    )
  }
  if (await othersMayRead(dataDir)) {
    return warn(
      `${dataDir} may be read by other users of this machine, and holds your lists`,
      `Run: chmod 700 ${dataDir}`,
    )
  }
  return ok(
    look.kind === 'absent'
      ? `${dataDir} can be used; it holds nothing yet`
      : `${dataDir} can be used`,
  )
}

/** The database on a server is examined by itself. */
const ELSEWHERE = { kind: 'usable', file: '' } as const

/** The folder, or the nearest one above it that is there. */
export async function nearestFolder(path: string): Promise<string> {
  const isThere = await stat(path).then(
    stats => stats.isDirectory(),
    () => false,
  )
  return isThere || dirname(path) === path ? path : nearestFolder(dirname(path))
}

async function reasonAgainst(dataDir: string): Promise<string | null> {
  const isThere = await stat(dataDir).catch(() => null)
  if (isThere !== null && !isThere.isDirectory()) return 'it is a file'
  const folder = await nearestFolder(dataDir)
  try {
    // A path that leads through a file tells so here.
    await stat(dataDir).catch(error => {
      if (error.code !== 'ENOENT') throw error
    })
    await access(folder, constants.W_OK | constants.X_OK)
    return null
  } catch (error) {
    return errorMessage(error)
  }
}

/** On Windows the mode says nothing. */
async function othersMayRead(dataDir: string): Promise<boolean> {
  const stats = await stat(dataDir).catch(() => null)
  return process.platform !== 'win32' && stats !== null && (stats.mode & 0o077) !== 0
}
