import { createWriteStream, mkdirSync } from 'node:fs'
import { type Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Log } from '../../platform/log.ts'
import { malformed, notStored, UploadFault } from './upload-error.ts'

const MIB = 1024 * 1024
/** A million rows of the usual kind have 30 to 60 MiB. */
export const FILE_BYTES_MAX = 100 * MIB

/** A request whose body is taken as it comes. */
export type Incoming = Pick<Request, 'body' | 'headers' | 'signal'>

/** Stores bytes under a path as a file that only we may read, and hands them to `see` as they come. Throws UploadFault. */
export async function storeBytes(
  bytes: Readable,
  path: string,
  see: (bytes: Uint8Array) => void,
): Promise<void> {
  const seen = new Transform({
    transform(some: Uint8Array, _, done) {
      see(some)
      done(null, some)
    },
  })
  try {
    await pipeline(bytes, seen, createWriteStream(path, { mode: 0o600 }))
  } catch (error) {
    if (error instanceof UploadFault) throw error
    throw isOfDisk(error) ? notStored(error) : brokenOff(error)
  }
}

/** Passes on at most so many bytes. */
export function limitedTo(bytesMax: number, fault: UploadFault): Transform {
  let length = 0
  return new Transform({
    transform(bytes: Uint8Array, _, done) {
      length += bytes.byteLength
      if (length > bytesMax) done(fault)
      else done(null, bytes)
    },
  })
}

export function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
  } catch (error) {
    throw notStored(error)
  }
}

export const cutOff = () => new UploadFault('cut-off', 'it did not come whole')

export const brokenOff = (cause: unknown) =>
  malformed('it ends too early, or its parts are broken', cause)

/** ENOSPC, EDQUOT, EIO …; what is wrong with the bytes themselves has other codes, or none. */
const isOfDisk = (error: unknown) =>
  error instanceof Error && 'code' in error && /^E[A-Z]+$/.test(String(error.code))

/** How much room there is where lists are stored. */
type DiskStatus = {
  /** Null: it cannot be seen. */
  readonly freeBytes: number | null
  /** Whether no new list should be taken. What cannot be seen refuses none. */
  readonly isLow: boolean
}

export type ReadDisk = () => Promise<DiskStatus>

type DiskDeps = {
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
