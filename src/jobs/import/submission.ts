import {
  addressKey,
  cleanAddress,
  isFault,
  isMissing,
  parseAddress,
  type SyntaxFault,
} from '../../engine/address/address.ts'

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

/** Parses the cell of the row at `position`, from 1. */
export function parseRow(cell: string, position: number): ParsedRow {
  const { text, address } = cleanAddress(cell)
  if (address !== null) return { text, dedupeKey: addressKey(address) }
  // A surrogate pair cut in half cannot be encoded as UTF-8.
  const truncated = text.slice(0, TEXT_LENGTH_MAX).toWellFormed()
  const parsed = parseAddress(truncated)
  const dedupeKey = isFault(parsed) ? faultKey(parsed, truncated, position) : addressKey(parsed)
  return { text: truncated, dedupeKey }
}

/** Rows without an address are not duplicates: each has a key of its own. */
const faultKey = (fault: SyntaxFault, text: string, position: number) =>
  isMissing(fault)
    ? `${MALFORMED_PREFIX}${MALFORMED_PREFIX}${position}`
    : `${MALFORMED_PREFIX}${text}`

/** Returns true if the row is an address. */
export const isAddress = ({ dedupeKey }: ParsedRow) => !dedupeKey.startsWith(MALFORMED_PREFIX)

/** Returns true if the row has no address, not even a malformed one. */
export const hasNoAddress = ({ dedupeKey }: ParsedRow) => NO_ADDRESS.test(dedupeKey)

const NO_ADDRESS = new RegExp(`^${MALFORMED_PREFIX}{2}\\d+$`)
