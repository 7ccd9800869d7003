import type { Context } from 'hono'
import { ACTIONS, type Action } from '../../engine/verdict/action.ts'
import type { Class } from '../../engine/verdict/verdict.ts'
import { SORT_FIELDS, type SortField } from '../../jobs/results/sorted-results.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { Env } from '../deps.ts'
import { CLASSES } from '../page/text.ts'

/** Selects the rows of a list to show. */
export type RowFilter = {
  readonly search: string
  readonly classes: readonly Class[]
  readonly reason: string
  /** Empty for all. */
  readonly action: Action | ''
  readonly sort: SortField
  readonly isDescending: boolean
  /**
   * Start position: the cursor of the previous page, or else a row number. Empty: the first row.
   */
  readonly cursor: string
  readonly row: string
  /** The row whose details are shown; empty for none. */
  readonly open: string
}

export const NO_FILTER: RowFilter = {
  search: '',
  classes: [],
  reason: '',
  action: '',
  sort: 'row',
  isDescending: false,
  cursor: '',
  row: '',
  open: '',
}

export const readFilter = ({ req }: Context<Env>): RowFilter => ({
  search: req.query('search') ?? '',
  classes: selectedClasses(req.queries('class') ?? []),
  reason: req.query('reason') ?? '',
  action: ACTIONS.find(action => action === req.query('action')) ?? '',
  sort: SORT_FIELDS.find(field => field === req.query('sort')) ?? 'row',
  isDescending: req.query('order') === 'desc',
  cursor: req.query('cursor') ?? '',
  row: req.query('row')?.trim() ?? '',
  open: req.query('open') ?? '',
})

/** The filter without its position, for another selection or order of rows. */
export const fromStart = (rowFilter: RowFilter): RowFilter => ({
  ...rowFilter,
  cursor: '',
  row: '',
  open: '',
})

/** All classes together are not a filter. */
function selectedClasses(names: readonly string[]): readonly Class[] {
  const selected = CLASSES.filter(kind => names.includes(kind))
  return selected.length === CLASSES.length ? [] : selected
}

export const isFiltered = ({ search, classes, reason, action }: RowFilter): boolean =>
  search !== '' || classes.length > 0 || reason !== '' || action !== ''

/** Whether the rows are in the order of the list. */
export const isListOrder = ({ sort, isDescending }: RowFilter): boolean =>
  sort === 'row' && !isDescending

/** Builds the URL of a list page with this filter. */
export function pathTo(jobId: string, rowFilter: RowFilter): string {
  const query = new URLSearchParams([...parametersOf(rowFilter)])
  return `/lists/${jobId}${query.size === 0 ? '' : `?${query}`}`
}

type Parameter = [name: string, value: string]

/** The parameters of the URL that differ from their defaults. */
export function parametersOf(rowFilter: RowFilter): readonly Parameter[] {
  const { search, reason, action, sort, isDescending, cursor, row, open, classes } = rowFilter
  const texts: Parameter[] = [
    ['search', search],
    ['reason', reason],
    ['action', action],
    ['sort', sort === 'row' ? '' : sort],
    ['order', isDescending ? 'desc' : ''],
    ['cursor', cursor],
    ['row', row],
    ['open', open],
  ]
  const chosen = classes.map((kind): Parameter => ['class', kind])
  return [...texts.filter(([, value]) => value !== ''), ...chosen]
}

/** Converts the filter to query parameters of the API. */
export function queryFor(rowFilter: RowFilter) {
  const { search, classes, reason, action, sort, isDescending, cursor, row } = rowFilter
  return {
    search: search || null,
    class: classes.join(',') || null,
    reason: reason || null,
    action: action || null,
    sort: sort === 'row' ? null : sort,
    order: isDescending ? 'desc' : null,
    cursor: cursor || null,
    // A cursor and a row both set the start; a sorted list has no row to start from.
    after: row === '' || cursor !== '' || !isListOrder(rowFilter) ? null : parseRow(row) - 1,
  }
}

/** Parses a row number, with or without thousands separators. */
const parseRow = (row: string): number => Number(row.replaceAll(/[,\s]/g, ''))

/** Returns why the row number is invalid; null if it is valid. */
export function filterError({ row, cursor }: RowFilter): string | null {
  const number = parseRow(row)
  if (row === '' || cursor !== '' || (Number.isSafeInteger(number) && number >= 1)) return null
  return `"${sanitizeText(row, ROW_SHOWN)}" is not a row number. Enter a whole number of at least 1.`
}

const ROW_SHOWN = 40
