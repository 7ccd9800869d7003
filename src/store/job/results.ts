import { sql } from 'kysely'
import { breathe } from '../../base/clock.ts'
import type { Class } from '../../verdict/verdict.ts'
import type { Database } from '../database.ts'

export type ResultRow = {
  readonly position: number
  readonly text: string
  /** JSON of what came with the address; null: nothing. */
  readonly cells: string | null
  readonly class: Class | null
  /** JSON; null: there is none yet. */
  readonly result: string | null
}

export type PageOptions = {
  readonly jobId: string
  /** The position of the last row of the page before. */
  readonly after: number
  readonly max: number
  /** Only rows whose result is of these; left out: all rows. */
  readonly classes?: readonly Class[]
}

/** Rows that are looked through in one go for those of a class. */
const STRETCH = 2_000

/** Results in the order of the list; a duplicate has the result of its first. Fewer than `max`: there are no more. */
export async function resultPage(database: Database, o: PageOptions): Promise<ResultRow[]> {
  const end = Number.MAX_SAFE_INTEGER
  if (o.classes === undefined) return rowsOf(database, { ...o, to: end })
  const last = await lastPosition(database, o.jobId)
  const found: ResultRow[] = []
  for (let after = o.after; after < last && found.length < o.max; after += STRETCH) {
    const rest = { ...o, after, to: after + STRETCH, max: o.max - found.length }
    found.push(...(await rowsOf(database, rest)))
    // A class that is rare in a long list would else hold everybody up.
    await breathe()
  }
  return found
}

async function rowsOf(
  { reader }: Database,
  o: PageOptions & { readonly to: number },
): Promise<ResultRow[]> {
  const ofClass =
    o.classes === undefined
      ? sql``
      : sql`and coalesce(item.class, first.class) in (${sql.join(o.classes)})`
  const { rows } = await sql<ResultRow>`
    select item.position as position, item.text as text, item.cells as cells,
      coalesce(item.class, first.class) as class, coalesce(item.result, first.result) as result
    from item left join item as first
      on first.job_id = item.job_id and first.position = item.same_as
    where item.job_id = ${o.jobId} and item.position > ${o.after} and item.position <= ${o.to}
      ${ofClass}
    order by item.position limit ${o.max}`.execute(reader)
  return rows
}

async function lastPosition({ db }: Database, jobId: string): Promise<number> {
  const row = await db
    .selectFrom('item')
    .select(eb => eb.fn.max('position').as('position'))
    .where('job_id', '=', jobId)
    .executeTakeFirst()
  return Number(row?.position ?? 0)
}
