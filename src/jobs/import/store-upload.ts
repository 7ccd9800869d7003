import { createWriteStream } from 'node:fs'
import { type Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createDirectory } from '../../platform/directory.ts'
import { EvError, isFileError } from '../../platform/error.ts'
import { formatMebibytes } from '../../platform/format.ts'
import { type Log, writeLog } from '../../platform/log.ts'
import { JOB_LOG } from '../telemetry.ts'

type UploadFaultKind =
  | 'no-form'
  | 'malformed'
  | 'several-files'
  | 'too-large'
  | 'not-stored'
  | 'cut-off'

/** A file could not be received or stored; `message` is a part of a sentence about it. */
export class UploadFault extends Error {
  override readonly name = 'UploadFault'
  readonly kind: UploadFaultKind

  constructor(kind: UploadFaultKind, message: string, cause?: unknown) {
    super(message, { cause })
    this.kind = kind
  }
}

export const malformed = (reason: string, cause?: unknown) =>
  new UploadFault('malformed', reason, cause)

const notStored = (cause: unknown) =>
  new UploadFault('not-stored', 'it cannot be stored now', cause)

export const tooLarge = (bytesMax: number) =>
  new UploadFault('too-large', `more than ${formatMebibytes(bytesMax)}, the limit for a file`)

const MIB = 1024 * 1024
/** A million typical rows take 30 to 60 MiB. */
export const FILE_BYTES_MAX = 100 * MIB

/** A request whose body is streamed. */
export type Incoming = Pick<Request, 'body' | 'headers' | 'signal'>

/**
 * Stores bytes in a file that only its owner may read, and passes each chunk to `onChunk`. Throws
 * UploadFault.
 */
export async function storeBytes(
  bytes: Readable,
  path: string,
  onChunk: (bytes: Uint8Array) => void,
): Promise<void> {
  const tap = new Transform({
    transform(chunk: Uint8Array, _, done) {
      onChunk(chunk)
      done(null, chunk)
    },
  })
  try {
    await pipeline(bytes, tap, createWriteStream(path, { mode: 0o600 }))
  } catch (error) {
    if (error instanceof UploadFault || error instanceof EvError) throw error
    throw isFileError(error) ? notStored(error) : malformedUpload(error)
  }
}

/** Passes through at most `bytesMax` bytes, then fails with `fault`. */
export function limitBytes(bytesMax: number, fault: UploadFault): Transform {
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
    createDirectory(folder)
  } catch (error) {
    throw notStored(error)
  }
}

export const incompleteUpload = () => new UploadFault('cut-off', 'it was not received completely')

export const malformedUpload = (cause: unknown) =>
  malformed('it ends too early or is malformed', cause)

/** Free space on the disk where lists are stored. */
type DiskStatus = {
  /** Null if it cannot be determined. */
  readonly freeBytes: number | null
  /** True if new lists must be refused; false if the free space is unknown. */
  readonly isLow: boolean
}

export type ReadDisk = () => Promise<DiskStatus>

type DiskDeps = {
  readonly dataDir: string
  /** Free bytes below which the disk is low. */
  readonly minBytes: number
  /** Returns the bytes that this process may still write on the disk of a folder. */
  readonly freeBytes: (folder: string) => Promise<number>
  readonly log: Log
}

/**
 * Returns a function that reads the free space of the data directory, and logs when it becomes low
 * and when it recovers.
 */
export function diskReader({ dataDir, minBytes, freeBytes, log }: DiskDeps): ReadDisk {
  let wasLow = false
  return async () => {
    const free = await freeBytes(dataDir).catch(() => null)
    const isLow = free !== null && free < minBytes
    if (isLow && !wasLow) writeLog(log, JOB_LOG.diskLow, { free, minBytes })
    if (!isLow && wasLow) writeLog(log, JOB_LOG.diskRecovered, { free })
    wasLow = isLow
    return { freeBytes: free, isLow }
  }
}
