import { statfs } from 'node:fs/promises'
import { report } from 'node:process'

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
