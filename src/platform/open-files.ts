import { errorCode } from './error.ts'

/**
 * Whether an operation failed because this process (EMFILE) or the system (ENFILE) has no free file
 * descriptor.
 */
export const isOutOfDescriptors = (error: unknown): boolean =>
  OUT_OF_DESCRIPTORS.has(errorCode(error))

/** The error codes of a missing file descriptor. */
export const OUT_OF_DESCRIPTORS: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE'])

/**
 * Files and sockets besides connections to mail servers, at their most: 200 DNS queries over TCP,
 * the database, and those of the process itself.
 */
const OTHER_FILES = 256
/** Files that a process has open before its first connection to a mail server, and a reserve. */
const OTHER_FILES_MIN = 40

/** Returns how many open files this number of connections needs, so that none has to wait. */
export const filesFor = (connections: number): number => connections + OTHER_FILES

/**
 * Returns how many of `wanted` connections fit the limit of open files, null if there is none; at
 * least one. Below `filesFor(wanted)` half of the free files is left for other things.
 */
export function connectionsFor(filesMax: number | null, wanted: number): number {
  if (filesMax === null || filesMax >= filesFor(wanted)) return wanted
  return Math.max(1, Math.min(wanted, Math.floor((filesMax - OTHER_FILES_MIN) / 2)))
}
