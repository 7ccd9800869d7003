import type { Log } from '../../platform/log.ts'

/** How much room there is where lists are stored. */
export type DiskStatus = {
  /** Null: it cannot be seen. */
  readonly freeBytes: number | null
  /** Whether no new list should be taken. What cannot be seen refuses none. */
  readonly isLow: boolean
}

export type ReadDisk = () => Promise<DiskStatus>

export type DiskDeps = {
  readonly dataDir: string
  /** Free bytes below which the disk is low. */
  readonly minBytes: number
  /** Bytes that we may still write on the disk of a folder. */
  readonly freeBytes: (folder: string) => Promise<number>
  readonly log: Log
}

/** Reads the disk of the data directory each time that it is called; the log says when it becomes low, and when that is over. */
export function diskReader({ dataDir, minBytes, freeBytes, log }: DiskDeps): ReadDisk {
  let wasLow = false
  return async () => {
    const free = await freeBytes(dataDir).catch(() => null)
    const isLow = free !== null && free < minBytes
    if (isLow && !wasLow) log.error('the disk is low: no new list is taken', { free, minBytes })
    if (!isLow && wasLow) log.info('the disk has room again: lists are taken', { free })
    wasLow = isLow
    return { freeBytes: free, isLow }
  }
}
