import { type RawBuilder, sql } from 'kysely'
import type { Database } from '../../db/database.ts'
import { nextChunk, runChunk } from '../../db/paging.ts'
import type { Reason } from '../../engine/verdict/reason.ts'
import { CLASSES, type Class } from '../../engine/verdict/verdict.ts'
import {
  type Found,
  lastPosition,
  reasonIn,
  type ScanOptions,
  scanRows,
} from '../results/result-store.ts'
import { checkedAt } from './selection.ts'

/** Number of rows by their class in the previous job and in this one. */
export type ChangeCount = { readonly from: Class; readonly to: Class; readonly count: number }

/** Counts the rows that a job has verified again, including those whose class is the same. */
export async function countChanges(database: Database, jobId: string): Promise<ChangeCount[]> {
  const last = await lastPosition(database, jobId)
  const counts = new Map<string, number>()
  const size = nextChunk(database)
  for (let after = 0; after < last; after += size) {
    const { rows } = await runChunk(database, () =>
      // Duplicates are counted with their first row, which has the number of copies.
      sql<ChangeCount>`
        select ${classIn(sql`previous`)} as "from", class as "to", sum(copies) as count
        from item where job_id = ${jobId} and position > ${after} and position <= ${after + size}
          and state = 'done' and previous is not null
        group by 1, 2`.execute(database.reader),
    )
    for (const { from, to, count } of rows) {
      counts.set(`${from} ${to}`, (counts.get(`${from} ${to}`) ?? 0) + Number(count))
    }
  }
  return CLASSES.flatMap(from =>
    CLASSES.flatMap(to => {
      const count = counts.get(`${from} ${to}`) ?? 0
      return count === 0 ? [] : [{ from, to, count }]
    }),
  )
}

/** The class in the text of a previous result. */
const classIn = (previous: RawBuilder<unknown>): RawBuilder<Class> => {
  const branches = CLASSES.map(
    name => sql`when ${previous} like ${sql.lit(`${name} %`)} then ${sql.lit(name)}`,
  )
  return sql`case ${sql.join(branches, sql` `)} end`
}

/** A result as far as it is compared. */
export type ComparedResult = {
  readonly class: Class
  readonly reason: Reason
  /** Epoch ms; null if the address was erased. */
  readonly checkedAt: number | null
}

/** A row whose class is not the one of the previous job. */
type Change = {
  /** Row number, from 1. */
  readonly position: number
  /** The address; empty if it was erased. */
  readonly text: string
  readonly before: ComparedResult
  readonly after: ComparedResult
}

type ChangesOptions = ScanOptions & {
  /** Only rows that had one of these classes. */
  readonly from?: readonly Class[] | undefined
  /** Only rows that have one of these classes now. */
  readonly to?: readonly Class[] | undefined
}

/** Finds the rows whose class has changed, in list order; see `scanRows`. */
export const findChanges = (database: Database, o: ChangesOptions): Promise<Found<Change>> =>
  scanRows(database, o, async part => ({
    rows: await selectChanges(database, { ...o, ...part }),
    readTo: part.end,
  }))

type ChangedRow = {
  readonly position: number
  readonly text: string
  readonly previous: string
  readonly class: Class
  readonly reason: Reason
  readonly checkedAt: number | null
}

async function selectChanges(
  { reader }: Database,
  o: ChangesOptions & { readonly end: number },
): Promise<Change[]> {
  const { rows } = await sql<ChangedRow>`
    with compared as (
      select item.position as position, item.text as text,
        coalesce(item.previous, first.previous) as previous,
        coalesce(item.class, first.class) as class, coalesce(item.result, first.result) as result
      from item left join item as first
        on first.job_id = item.job_id and first.position = item.same_as
      where item.job_id = ${o.jobId} and item.position > ${o.after} and item.position <= ${o.end})
    select position, text, previous, class,
      ${reasonIn(reader, sql`result`, sql`class`)} as reason, ${checkedAt(reader)} as "checkedAt"
    from compared where class <> ${classIn(sql`previous`)}
      ${o.from === undefined ? sql`` : sql`and ${classIn(sql`previous`)} in (${sql.join(o.from)})`}
      ${o.to === undefined ? sql`` : sql`and class in (${sql.join(o.to)})`}
    order by position limit ${o.max}`.execute(reader)
  return rows.map(({ position, text, previous, class: klass, reason, checkedAt }) => ({
    position: Number(position),
    text,
    before: parsePrevious(previous),
    after: { class: klass, reason, checkedAt: checkedAt === null ? null : Number(checkedAt) },
  }))
}

/** Parses the previous result of an item. */
export function parsePrevious(text: string): ComparedResult {
  const [name, reason, checkedAt] = text.split(' ')
  return { class: name as Class, reason: reason as Reason, checkedAt: Number(checkedAt) }
}
