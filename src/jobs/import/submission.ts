import { open } from 'node:fs/promises'
import { HEAD_BYTES_MAX } from '../../csv/csv.ts'
import { addressKey, cleanAddress, isFault, parseAddress } from '../../engine/address/address.ts'

/** One row of a list, as it is asked. */
export type ParsedRow = {
  /** The address as it is asked: what the cell held, cleaned of what people paste around an address. */
  readonly text: string
  /** Rows with the same key are asked once. */
  readonly dedupeKey: string
}

/** Longer cells are no address; what is kept of them is enough to recognise them. */
const TEXT_LENGTH_MAX = 1_000

/** A mark that no address key has keeps faulty texts apart from addresses. */
const FAULTY = '\u0000'

export function parseRow(cell: string): ParsedRow {
  const { text } = cleanAddress(cell)
  // A character cut in half would have no UTF-8.
  const kept = text.slice(0, TEXT_LENGTH_MAX).toWellFormed()
  const parsed = parseAddress(kept)
  return { text: kept, dedupeKey: isFault(parsed) ? `${FAULTY}${kept}` : addressKey(parsed) }
}

/** Whether it is an address, which can be asked. */
export const isAddress = ({ dedupeKey }: ParsedRow) => !dedupeKey.startsWith(FAULTY)

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
