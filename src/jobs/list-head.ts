import { open } from 'node:fs/promises'
import { HEAD_BYTES_MAX } from '../csv/csv.ts'

/** The first bytes of a list on disk, by which its dialect is told, and whether they are all of it. */
export async function readHead(path: string): Promise<{ head: Uint8Array; complete: boolean }> {
  const file = await open(path)
  try {
    const buffer = new Uint8Array(HEAD_BYTES_MAX)
    const { bytesRead } = await file.read(buffer, 0, HEAD_BYTES_MAX, 0)
    const { size } = await file.stat()
    return { head: buffer.subarray(0, bytesRead), complete: bytesRead >= size }
  } finally {
    await file.close()
  }
}
