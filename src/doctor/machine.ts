import { readFileSync } from 'node:fs'
import { mkdtemp, rmdir, stat, statfs } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { report } from 'node:process'
import { isPostgresUrl } from '../db/database-url.ts'
import { inspectDatabase } from '../maintenance/inspect.ts'
import { errorMessage } from '../platform/error.ts'
import { formatBytes, formatNumber } from '../platform/format.ts'
import { connectionsFor, filesFor } from '../platform/open-files.ts'
import { type Finding, fail, ok, warn } from './finding.ts'

/** Properties of the machine that the checks read. */
export type Machine = {
  /** Returns the free bytes on the disk of a directory. */
  freeBytes(folder: string): Promise<number>
  /** Limit of open files and sockets per process; null if there is none or it is unknown. */
  readonly openFilesMax: number | null
}

export const thisMachine: Machine = {
  async freeBytes(folder) {
    const { bavail, bsize } = await statfs(folder)
    return bavail * bsize
  },
  get openFilesMax() {
    return readOpenFilesMax()
  },
}

/**
 * Returns the limit of open files; null if there is none or it is unknown. Linux has it in a file;
 * elsewhere a report of Node has it, which takes 20 ms.
 */
export function readOpenFilesMax(limitsFile = '/proc/self/limits'): number | null {
  const soft = Number(readLinuxLimit(limitsFile) ?? readReportedLimit())
  return Number.isNaN(soft) ? null : soft
}

/** Returns the soft limit as text, digits or `unlimited`; undefined if the file cannot be read. */
function readLinuxLimit(file: string): string | undefined {
  try {
    return /^Max open files +(\w+)/m.exec(readFileSync(file, 'utf8'))?.[1]
  } catch {
    return undefined
  }
}

function readReportedLimit(): unknown {
  // Without this the report resolves the host names of all peers.
  Object.assign(report, { excludeNetwork: true })
  const { userLimits } = report.getReport() as { userLimits?: Record<string, { soft: unknown }> }
  return userLimits?.open_files?.soft
}

/** Checks the free disk space: a list of a million rows takes about 0.5 GB. */
export async function diskFinding(machine: Machine, dataDir: string): Promise<Finding> {
  const folder = await nearestFolder(dataDir)
  try {
    const free = await machine.freeBytes(folder)
    const says = `${formatBytes(free)} free on the disk of ${dataDir}`
    const todo = 'Free up space, or set a directory on another disk with --data-dir.'
    if (free < FREE_MIN) return fail(says, todo)
    return free < FREE_GOOD ? warn(says, todo) : ok(says)
  } catch (error) {
    return warn(
      `cannot read the free space of ${folder}: ${errorMessage(error)}`,
      'Check it with df, or set another directory with --data-dir.',
    )
  }
}

const MEGABYTE = 1_000_000
const GIGABYTE = 1_000 * MEGABYTE
/** The size of a list of about 200,000 rows. */
const FREE_MIN = 100 * MEGABYTE
const FREE_GOOD = GIGABYTE

/** Checks that the limit of open files allows the configured number of connections. */
export function openFilesFinding(filesMax: number | null, concurrency: number): Finding {
  const needed = filesFor(concurrency)
  if (filesMax === null) return ok('no limit on open files')
  if (filesMax >= needed) {
    return ok(
      `the limit of open files is ${formatNumber(filesMax)}; ${concurrency} connections need ${needed}`,
    )
  }
  return warn(
    `the limit of open files is only ${formatNumber(filesMax)}; ${concurrency} connections need ${needed}, so ev opens at most ${connectionsFor(filesMax, concurrency)}`,
    `Raise the limit (ulimit -n ${needed}, or LimitNOFILE= of systemd), or lower --concurrency.`,
  )
}

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
      'Check its permissions. If it is damaged or not an ev database, move it away, or set another directory with --data-dir.',
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
async function nearestFolder(path: string): Promise<string> {
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
    // Not access(2): it grants everything to root, also in folders such as /proc.
    await rmdir(await mkdtemp(join(folder, '.ev-')))
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
