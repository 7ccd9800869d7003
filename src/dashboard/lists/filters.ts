import type { Context } from 'hono'
import type { Class } from '../../engine/verdict/verdict.ts'
import { sanitizeText } from '../../platform/text.ts'
import type { Env } from '../deps.ts'
import { CLASSES } from './charts.ts'

/** Which rows of a list are looked at. */
export type RowFilter = {
  readonly search: string
  readonly classes: readonly Class[]
  readonly reason: string
  /** Where to begin: what the page before said, or a row; empty: at the first row. */
  readonly cursor: string
  readonly row: string
}

export const readFilter = ({ req }: Context<Env>): RowFilter => ({
  ...{ search: req.query('search') ?? '', reason: req.query('reason') ?? '' },
  ...{ cursor: req.query('cursor') ?? '', row: req.query('row')?.trim() ?? '' },
  classes: CLASSES.filter(kind => req.queries('class')?.includes(kind)),
})

export const isFiltered = ({ search, classes, reason }: RowFilter): boolean =>
  search !== '' || classes.length > 0 || reason !== ''

/** The page of a list where these rows are shown. */
export function pathTo(jobId: string, { search, reason, cursor, row, classes }: RowFilter): string {
  const given = Object.entries({ search, reason, cursor, row }).filter(([, text]) => text !== '')
  const query = new URLSearchParams([...given, ...classes.map(kind => ['class', kind])] as [
    string,
    string,
  ][])
  return `/lists/${jobId}${query.size === 0 ? '' : `?${query}`}`
}

/** As the API asks for them. */
export function queryFor({ search, classes, reason, cursor, row }: RowFilter) {
  return {
    ...{ search: search || null, class: classes.join(',') || null, reason: reason || null },
    ...(cursor === '' ? { after: afterOf(row) } : { cursor }),
  }
}

const afterOf = (row: string): number | null => (row === '' ? null : placeOf(row) - 1)

/** “9,000” is 9000. */
const placeOf = (row: string): number => Number(row.replaceAll(/[,\s]/g, ''))

/** Why there is no such place in a list, in a sentence; null: there may be. */
export function filterError({ row, cursor }: RowFilter): string | null {
  const place = placeOf(row)
  if (row === '' || cursor !== '' || (Number.isSafeInteger(place) && place >= 1)) return null
  return `“${sanitizeText(row, ROW_SHOWN)}” is no number of a row. Write a whole number, from 1 on.`
}

const ROW_SHOWN = 40
