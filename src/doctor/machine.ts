import { statfs } from 'node:fs/promises'
import { report } from 'node:process'
import { errorMessage } from '../platform/error.ts'
import { formatBytes, formatNumber } from '../platform/format.ts'
import { nearestFolder } from './data-directory.ts'
import { type Finding, fail, ok, warn } from './finding.ts'

/** What the doctor asks of the machine it runs on. */
export type Machine = {
  /** Bytes that we may still write on the disk of this folder. */
  freeBytes(folder: string): Promise<number>
  /** Files and sockets that one process may have open; null where there is no limit or nobody tells. */
  readonly openFilesMax: number | null
}

export const thisMachine: Machine = {
  async freeBytes(folder) {
    const { bavail, bsize } = await statfs(folder)
    return bavail * bsize
  },
  get openFilesMax() {
    // The report would else look up the names of all peers.
    Object.assign(report, { excludeNetwork: true })
    const { userLimits } = report.getReport() as { userLimits?: Record<string, { soft: unknown }> }
    const soft = userLimits?.open_files?.soft
    return typeof soft === 'number' ? soft : null
  },
}

/** Whether there is room for lists: a million rows take about half a gigabyte. */
export async function diskFinding(machine: Machine, dataDir: string): Promise<Finding> {
  const folder = await nearestFolder(dataDir)
  try {
    const free = await machine.freeBytes(folder)
    const says = `${formatBytes(free)} free on the disk of ${dataDir}`
    const todo = 'Make room there, or name a folder on another disk with --data-dir.'
    if (free < FREE_MIN) return fail(says, todo)
    return free < FREE_GOOD ? warn(says, todo) : ok(says)
  } catch (error) {
    return warn(
      `how much room ${folder} has cannot be seen: ${errorMessage(error)}`,
      'Look at it with df, or name another folder with --data-dir.',
    )
  }
}

const MEGABYTE = 1_000_000
const GIGABYTE = 1_000 * MEGABYTE
/** Below it a list of some 200,000 rows no longer fits. */
const FREE_MIN = 100 * MEGABYTE
const FREE_GOOD = GIGABYTE

/** Whether as many connections may be open as the settings ask for. */
export function openFilesFinding(filesMax: number | null, concurrency: number): Finding {
  const needed = concurrency + OTHER_FILES
  if (filesMax === null) return ok('nothing limits how many files may be open')
  if (filesMax >= needed) {
    return ok(
      `${formatNumber(filesMax)} files may be open; ${concurrency} connections need ${needed}`,
    )
  }
  return warn(
    `only ${formatNumber(filesMax)} files may be open, and ${concurrency} connections need ${needed}`,
    `Raise the limit (ulimit -n ${needed}, or LimitNOFILE= of systemd), or lower --concurrency.`,
  )
}

/** DNS questions under way (200), the database, and what the process itself has open. */
const OTHER_FILES = 256
