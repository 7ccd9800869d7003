import { type RawBuilder, sql } from 'kysely'

/** A position in rows that are sorted newest first: after the row with these values. */
export type PagePosition = { readonly createdAt: number; readonly id: string }

export type PageRange = {
  /** The last row of the previous page; null: start with the newest. */
  readonly before: PagePosition | null
  /** Exclusive end of the time range, epoch ms. */
  readonly until?: number | undefined
}

/**
 * Combines both bounds into one position: with two upper bounds SQLite would use one of them and
 * test the other row by row.
 */
export function pageStart({ before, until }: PageRange): PagePosition | null {
  if (until === undefined || (before !== null && before.createdAt < until)) return before
  return { createdAt: until, id: '' }
}

/** Selects the rows after a position, which are older. */
export const isAfter = ({ createdAt, id }: PagePosition): RawBuilder<boolean> =>
  sql<boolean>`(created_at, id) < (${createdAt}, ${id})`
