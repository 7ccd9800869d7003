import { formatNumber } from '../platform/format.ts'
import { type Finding, ok, warn } from './finding.ts'

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
