import { statfs } from 'node:fs/promises'
import { report } from 'node:process'
import { errorMessage } from '../platform/error.ts'
import { formatBytes, formatNumber } from '../platform/format.ts'
import { nearestFolder } from './data-directory.ts'
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
    // Without this the report resolves the host names of all peers.
    Object.assign(report, { excludeNetwork: true })
    const { userLimits } = report.getReport() as { userLimits?: Record<string, { soft: unknown }> }
    const soft = userLimits?.open_files?.soft
    return typeof soft === 'number' ? soft : null
  },
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
  const needed = concurrency + OTHER_FILES
  if (filesMax === null) return ok('no limit on open files')
  if (filesMax >= needed) {
    return ok(
      `the limit of open files is ${formatNumber(filesMax)}; ${concurrency} connections need ${needed}`,
    )
  }
  return warn(
    `the limit of open files is only ${formatNumber(filesMax)}; ${concurrency} connections need ${needed}`,
    `Raise the limit (ulimit -n ${needed}, or LimitNOFILE= of systemd), or lower --concurrency.`,
  )
}

/** DNS queries in flight (200), the database, and files of the process itself. */
const OTHER_FILES = 256
