import { type RawBuilder, sql } from 'kysely'
import type { Reader } from '../../db/reader.ts'
import { startsWithNul, textAt } from '../../db/sql-dialect.ts'
import type { Class } from '../../engine/verdict/verdict.ts'

/** Older results than these have been deleted by any sensible `--keep-results`. */
export const OLDER_THAN_DAYS_MAX = 3_650

/**
 * Which results of a job to verify again: those that match at least one condition; all if there is
 * no condition. Rows without a result are always selected.
 */
export type Selection = {
  /** Results of these classes. */
  readonly classes?: readonly Class[] | undefined
  /** Results that were determined before this time, epoch ms. */
  readonly checkedBefore?: number | undefined
}

/**
 * Selects items to verify. The results of texts that are not addresses never change, and erased
 * addresses cannot be verified.
 */
export const isSelected = (db: Reader, selection: Selection): RawBuilder<boolean> =>
  sql<boolean>`(state not in ('done', 'same') or (
    state = 'done' and ${isAddress(db)} and ${matches(db, selection)}))`

/** Whether an item is an address, which takes a credit. */
export const isAddress = (db: Reader): RawBuilder<boolean> =>
  sql<boolean>`(text <> '' and not ${startsWithNul(db, sql`dedupe_key`)})`

function matches(db: Reader, { classes, checkedBefore }: Selection): RawBuilder<unknown> {
  const conditions = [
    ...(classes === undefined ? [] : [sql`class in (${sql.join(classes)})`]),
    ...(checkedBefore === undefined ? [] : [sql`${checkedAt(db)} < ${checkedBefore}`]),
  ]
  return conditions.length === 0 ? sql`1 = 1` : sql`(${sql.join(conditions, sql` or `)})`
}

/** When the result of an item was determined, epoch ms; null if it is erased. */
export const checkedAt = (db: Reader): RawBuilder<number | null> =>
  sql`cast(${textAt(db, sql`result`, ['checkedAt'])} as bigint)`
