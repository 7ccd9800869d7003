import type { ListDialect } from '../../csv/csv.ts'
import { type ExternalResult, SOURCE_TITLES } from '../../engine/verdict/external.ts'
import type { ExternalSource } from '../../engine/verdict/verdict.ts'
import {
  type ExternalColumns,
  findExternalColumns,
  readExternal,
} from '../../formats/vocabulary/read-external.ts'
import { DAY } from '../../platform/clock.ts'
import { formatNumber } from '../../platform/format.ts'

// Which rows of a list keep the result of another service that the list brought with it.

/** How old such a result may be, in ms. Settings of the same names. */
export type ExternalAges = {
  readonly externalMaxAgeMs: number
  readonly externalUnknownMaxAgeMs: number
}

type ReaderOptions = ExternalAges & {
  /** When the export was made, epoch ms, for rows without a date; null if it is not known. */
  readonly exportedAt: number | null
  /** Epoch ms. */
  readonly now: number
}

/** A date that is later than now by more than this is wrong, and not that of another time zone. */
const AHEAD_MS_MAX = DAY

/** Reads the results of the rows of a list, and counts those that are not used. */
export class ExternalReader {
  readonly columns: ExternalColumns
  readonly #options: ReaderOptions
  /** Rows with a result that is young enough. */
  usable = 0
  /** Rows with a result that is too old. */
  tooOld = 0
  /** Rows with a result of which nothing tells the age, or a wrong date does. */
  undated = 0

  constructor(columns: ExternalColumns, options: ReaderOptions) {
    this.columns = columns
    this.#options = options
  }

  /** Returns the result of a row that is young enough; null if there is none. */
  read(cells: readonly string[]): ExternalResult | null {
    const found = readExternal(this.columns, cells)
    if (found === null) return null
    const { exportedAt, now, externalMaxAgeMs, externalUnknownMaxAgeMs } = this.#options
    const checkedAt = found.checkedAt ?? exportedAt
    if (checkedAt === null || checkedAt > now + AHEAD_MS_MAX) {
      this.undated++
      return null
    }
    const isUnknown = found.reason === 'external_unknown'
    if (now - checkedAt > (isUnknown ? externalUnknownMaxAgeMs : externalMaxAgeMs)) {
      this.tooOld++
      return null
    }
    this.usable++
    return { ...found, checkedAt: Math.min(checkedAt, now) }
  }
}

/** Returns the service whose results a list has; null if none is recognized. */
export const findExternalSource = (dialect: ListDialect): ExternalSource | null =>
  findExternalColumns(dialect)?.source ?? null

/** Returns the reader of a list; null if it has no results that are recognized. */
export function createExternalReader(
  dialect: ListDialect,
  options: ReaderOptions,
): ExternalReader | null {
  const columns = findExternalColumns(dialect)
  return columns === null ? null : new ExternalReader(columns, options)
}

/** Says in sentences what became of the results of a list, of which `kept` rows keep theirs. */
export function describeExternal(
  reader: ExternalReader | null,
  kept: number,
  dateOption: string,
): string {
  if (reader === null) {
    return 'No results of ZeroBounce, NeverBounce, Kickbox, Reacher or ev were recognized in the columns of the list, so every row is verified.'
  }
  const { columns, tooOld, undated } = reader
  const title = SOURCE_TITLES[columns.source]
  const sentences = [
    kept === 1
      ? `1 row keeps the result of ${title}; ev has not tested it.`
      : `${formatNumber(kept)} rows keep the result of ${title}; ev has not tested them.`,
  ]
  if (tooOld > 0) {
    sentences.push(
      tooOld === 1
        ? '1 result is too old, so its row is verified.'
        : `${formatNumber(tooOld)} results are too old, so their rows are verified.`,
    )
  }
  if (undated > 0) {
    const verified =
      undated === 1
        ? '1 result has no date that ev can read, so its row is verified'
        : `${formatNumber(undated)} results have no date that ev can read, so their rows are verified`
    sentences.push(`${verified}; ${dateOption} says when the export was made.`)
  }
  return sentences.join(' ')
}
