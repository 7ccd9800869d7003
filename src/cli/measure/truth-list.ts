import { detectDialect, readList } from '../../csv/csv.ts'
import { isFault, parseAddress } from '../../engine/address/address.ts'
import { openContent, readContentHead } from '../../formats/open-content.ts'
import { EvError, errorMessage } from '../../platform/error.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { Truth } from './score.ts'
import { toMatchKey } from './tool.ts'

/** An address with its truth. */
export type KnownAddress = {
  readonly address: string
  /** See `toMatchKey`. */
  readonly key: string
  readonly truth: Truth
}

type TruthList = {
  readonly addresses: readonly KnownAddress[]
  /** Rows without an address or without a word for its truth, and repeated addresses. */
  readonly skipped: number
}

/** Addresses of a measurement: each of them is a connection or more, and all are kept in memory. */
const ADDRESSES_MAX = 100_000
/** A decompressed list. */
const EXPANDED_BYTES_MAX = 256 * 1024 ** 2

/** Words for the truth, in lower case. */
const WORDS: ReadonlyMap<string, Truth> = new Map([
  ...['exists', 'delivered', 'deliverable', 'valid', 'alive', 'true', 'yes', '1'].map(
    word => [word, 'exists'] as const,
  ),
  ...['missing', 'bounced', 'undeliverable', 'invalid', 'dead', 'false', 'no', '0'].map(
    word => [word, 'missing'] as const,
  ),
])

/**
 * Reads a list with an address column and a column `truth`. Throws EvError if it has no such column,
 * no known address, or too many.
 */
export async function readTruthList(path: string): Promise<TruthList> {
  try {
    return await readRows(path)
  } catch (cause) {
    if (cause instanceof EvError) throw cause
    const why = errorMessage(cause)
    throw new EvError('no_input', `The list ${path} cannot be read: ${why}.`, { cause })
  }
}

async function readRows(path: string): Promise<TruthList> {
  const content = await openContent(path, { expandedBytesMax: EXPANDED_BYTES_MAX })
  const { head, complete } = await readContentHead(content)
  const dialect = detectDialect(head, { ...content.known, complete, allAddresses: false })
  const names = (dialect.header ?? []).map(name => name.trim().toLowerCase())
  const column = names.indexOf('truth')
  if (column === -1) {
    throw new EvError(
      'bad_input',
      `The list ${path} has no column "truth". Add one with a word for each address: exists or missing.`,
    )
  }
  const known = new Map<string, KnownAddress>()
  let skipped = 0
  for await (const rows of readList(content.read(), dialect)) {
    for (const { text, cells } of rows) {
      const address = parseAddress(text.trim())
      const truth = WORDS.get((cells[column] ?? '').trim().toLowerCase())
      const key = isFault(address) ? null : toMatchKey(address)
      if (isFault(address) || key === null || truth === undefined || known.has(key)) skipped++
      else known.set(key, { address: address.text, key, truth })
    }
    if (known.size > ADDRESSES_MAX) throw tooMany(path)
  }
  if (known.size > 0) return { addresses: [...known.values()], skipped }
  const words = [...WORDS.keys()].join(', ')
  throw new EvError(
    'bad_input',
    `No row of ${sanitizeText(path)} has an address and a known word in the column "truth". It takes ${words}.`,
  )
}

const tooMany = (path: string) =>
  new EvError(
    'bad_input',
    `The list ${path} has more than ${ADDRESSES_MAX.toLocaleString('en')} addresses. Measure a sample of it: 1,000 addresses of each kind give an interval of about 3 points.`,
  )
