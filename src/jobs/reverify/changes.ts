import { type RawBuilder, sql } from 'kysely'
import type { Database } from '../../db/database.ts'
import { nextChunk, runChunk, SCANNED_MAX } from '../../db/paging.ts'
import type { Reason } from '../../engine/verdict/reason.ts'
import { CLASSES, type Class } from '../../engine/verdict/verdict.ts'
import { lastPosition, reasonIn } from '../results/result-store.ts'
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

type ChangesOptions = {
  readonly jobId: string
  /** Position of the last row of the previous page. */
  readonly after: number
  readonly max: number
  /** Only rows that had one of these classes. */
  readonly from?: readonly Class[] | undefined
  /** Only rows that have one of these classes now. */
  readonly to?: readonly Class[] | undefined
  /** Maximum number of rows scanned. */
  readonly scannedMax?: number
}

type Found = {
  readonly changes: readonly Change[]
  /** Position after which the next search starts; null if there are no more rows. */
  readonly next: number | null
}

/**
 * Finds the rows whose class has changed, in list order. Ends after `scannedMax` rows and returns
 * what was found, possibly nothing.
 */
export async function findChanges(database: Database, o: ChangesOptions): Promise<Found> {
  const last = await lastPosition(database, o.jobId)
  const to = Math.min(last, o.after + (o.scannedMax ?? SCANNED_MAX))
  const changes: Change[] = []
  let after = o.after
  // One more row than requested shows whether there are more.
  while (after < to && changes.length <= o.max) {
    const end = Math.min(to, after + nextChunk(database))
    const part = { ...o, after, end, max: o.max + 1 - changes.length }
    changes.push(...(await runChunk(database, () => selectChanges(database, part))))
    after = end
  }
  const shown = changes.slice(0, o.max)
  if (changes.length > o.max) return { changes: shown, next: shown.at(-1)?.position ?? null }
  return { changes, next: after < last ? after : null }
}

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
