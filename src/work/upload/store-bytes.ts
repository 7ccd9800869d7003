import { createWriteStream, mkdirSync } from 'node:fs'
import { Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { ReadableStream } from 'node:stream/web'
import { malformed, notStored, tooLarge, UploadFault } from './fault.ts'

const MIB = 1024 * 1024
/** A million rows of the usual kind have 30 to 60 MiB. */
export const FILE_BYTES_MAX = 100 * MIB

/** A request whose body is taken as it comes. */
export type Incoming = Pick<Request, 'body' | 'headers' | 'signal'>

/** Stores the body of a request as a file that only we may read, and gives its size. Throws UploadFault. */
export async function storeBody(
  { body, signal }: Incoming,
  path: string,
  bytesMax: number,
): Promise<number> {
  const bytes = body === null ? Readable.from([]) : Readable.fromWeb(body as ReadableStream)
  let size = 0
  const check = (some: Uint8Array) => {
    size += some.byteLength
    return size > bytesMax ? tooLarge(bytesMax) : null
  }
  try {
    await storeBytes(bytes, path, check)
    return size
  } catch (error) {
    throw signal.aborted ? cutOff() : error
  }
}

/** Stores bytes as they come, unless `check` finds a fault in them. Throws UploadFault. */
export async function storeBytes(
  bytes: Readable,
  path: string,
  check: (bytes: Uint8Array) => UploadFault | null,
): Promise<void> {
  const checked = new Transform({
    transform(some: Uint8Array, _, done) {
      const fault = check(some)
      if (fault === null) done(null, some)
      else done(fault)
    },
  })
  try {
    await pipeline(bytes, checked, createWriteStream(path, { mode: 0o600 }))
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
