import type { Context } from 'hono'
import type { Class } from '../../engine/verdict/verdict.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { Env } from '../deps.ts'
import { CLASSES } from '../page/text.ts'

/** Selects the rows of a list to show. */
export type RowFilter = {
  readonly search: string
  readonly classes: readonly Class[]
  readonly reason: string
  /**
   * Start position: the cursor of the previous page, or else a row number. Empty: the first row.
   */
  readonly cursor: string
  readonly row: string
}

export const NO_FILTER: RowFilter = { search: '', classes: [], reason: '', cursor: '', row: '' }

export const readFilter = ({ req }: Context<Env>): RowFilter => ({
  ...{ search: req.query('search') ?? '', reason: req.query('reason') ?? '' },
  ...{ cursor: req.query('cursor') ?? '', row: req.query('row')?.trim() ?? '' },
  classes: selectedClasses(req.queries('class') ?? []),
})

/** All classes are no filter. */
function selectedClasses(names: readonly string[]): readonly Class[] {
  const selected = CLASSES.filter(kind => names.includes(kind))
  return selected.length === CLASSES.length ? [] : selected
}

export const isFiltered = ({ search, classes, reason }: RowFilter): boolean =>
  search !== '' || classes.length > 0 || reason !== ''

/** Builds the URL of a list page with this filter. */
export function pathTo(jobId: string, { search, reason, cursor, row, classes }: RowFilter): string {
  const texts = Object.entries({ search, reason, cursor, row }).filter(([, text]) => text !== '')
  const query = new URLSearchParams([...texts, ...classes.map(kind => ['class', kind])] as [
    string,
    string,
  ][])
  return `/lists/${jobId}${query.size === 0 ? '' : `?${query}`}`
}

/** Converts the filter to query parameters of the API. */
export function queryFor({ search, classes, reason, cursor, row }: RowFilter) {
  return {
    ...{ search: search || null, class: classes.join(',') || null, reason: reason || null },
    ...(cursor === '' ? { after: afterOf(row) } : { cursor }),
  }
}

const afterOf = (row: string): number | null => (row === '' ? null : parseRow(row) - 1)

/** Parses a row number, with or without thousands separators. */
const parseRow = (row: string): number => Number(row.replaceAll(/[,\s]/g, ''))

/** Returns why the row number is invalid; null if it is valid. */
export function filterError({ row, cursor }: RowFilter): string | null {
  const number = parseRow(row)
  if (row === '' || cursor !== '' || (Number.isSafeInteger(number) && number >= 1)) return null
  return `"${sanitizeText(row, ROW_SHOWN)}" is not a row number. Enter a whole number of at least 1.`
}

const ROW_SHOWN = 40
