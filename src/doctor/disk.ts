import { errorMessage } from '../platform/error.ts'
import { formatBytes } from '../platform/format.ts'
import { nearestFolder } from './data-directory.ts'
import { type Finding, fail, ok, warn } from './finding.ts'
import type { Machine } from './machine.ts'

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
