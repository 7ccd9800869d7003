import { addressKey, cleanAddress, isFault, parseAddress } from '../../engine/address/address.ts'

/** One row of a list, parsed for verification. */
export type ParsedRow = {
  /** The text to verify: the cell without characters that people paste around an address. */
  readonly text: string
  /** Rows with the same key are verified once. */
  readonly dedupeKey: string
}

/** Longer cells are not addresses; this prefix is enough to recognize them. */
const TEXT_LENGTH_MAX = 1_000

/** Prefix that no address key has; it separates malformed texts from addresses. */
const MALFORMED_PREFIX = '\u0000'

export function parseRow(cell: string): ParsedRow {
  const { text } = cleanAddress(cell)
  // A surrogate pair cut in half cannot be encoded as UTF-8.
  const truncated = text.slice(0, TEXT_LENGTH_MAX).toWellFormed()
  const parsed = parseAddress(truncated)
  return {
    text: truncated,
    dedupeKey: isFault(parsed) ? `${MALFORMED_PREFIX}${truncated}` : addressKey(parsed),
  }
}

/** Returns true if the row is an address. */
export const isAddress = ({ dedupeKey }: ParsedRow) => !dedupeKey.startsWith(MALFORMED_PREFIX)
