/** Extensions of lists, which the extension of the download replaces. */
const LIST_EXTENSION = /(\.(csv|tsv|tab|txt|json|ndjson|xlsx?))?(\.(gz|zip))?$/i
/** Characters that file systems or shells give a meaning to. */
const RESERVED = /[\p{C}\p{Zl}\p{Zp}\uFFFD/\\:*?"<>|]+/gu
/** File systems allow 255 bytes; a character takes up to 4 in UTF-8, and the suffix up to 60. */
const STEM_LENGTH_MAX = 48

type DownloadNameOptions = {
  readonly id: string
  /** The name of the list or of its file; null if it has none. */
  readonly listName: string | null
  /** The classes and actions in the download; empty if it has all. */
  readonly names: readonly string[]
  /** Whether rows without a result are missing. */
  readonly isPartial: boolean
  readonly extension: string
}

/**
 * Returns the file name of a download: `customers-deliverable.csv` for this class of the list
 * `customers.csv`, `customers-send.csv` for this action, `customers-verified.csv` for all rows, and
 * `customers-verified-partial.csv` before the list is completed. A list without a name has its ID.
 */
export function downloadName(options: DownloadNameOptions): string {
  const { id, listName, names, isPartial, extension } = options
  const stem = toStem(listName ?? '')
  const suffix = names.length > 0 || stem === '' ? names : ['verified']
  const partial = isPartial ? ['partial'] : []
  return `${[stem || id, ...suffix, ...partial].join('-')}.${extension}`
}

/** Replaces characters that a file name cannot have; empty if nothing is left. */
function toStem(name: string): string {
  const clean = name.replace(LIST_EXTENSION, '').toWellFormed().replace(RESERVED, ' ')
  const short = [...clean.replace(/\s+/g, ' ').trim()].slice(0, STEM_LENGTH_MAX).join('')
  // A leading dot hides a file, and Windows drops dots and spaces at the end.
  return short.replace(/^[.\s-]+|(?<![.\s])[.\s]+$/g, '')
}

/**
 * Returns the header that saves a response under this name (RFC 6266), with an ASCII fallback for
 * programs that do not read `filename*`.
 */
export function attachment(name: string): string {
  const fallback = name.replace(/[^\x20-\x7e]|["\\%]/gu, '_')
  const header = `attachment; filename="${fallback}"`
  return fallback === name ? header : `${header}; filename*=UTF-8''${encodeExtended(name)}`
}

/** Encodes an extended value (RFC 8187); `encodeURIComponent` keeps four characters too many. */
const encodeExtended = (text: string) =>
  encodeURIComponent(text).replace(
    /['()*]/g,
    one => `%${one.charCodeAt(0).toString(16).toUpperCase()}`,
  )
