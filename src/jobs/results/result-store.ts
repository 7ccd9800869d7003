import { type Kysely, type RawBuilder, sql } from 'kysely'
import { runChunk, nextChunk, SCANNED_MAX } from '../../db/chunked-scan.ts'
import type { Database } from '../../db/database.ts'
import type { Schema } from '../../db/schema.ts'
import { contains, hasNonAscii, textAt } from '../../db/sql-dialect.ts'
import { type Reason, VERDICT_BY_REASON } from '../../engine/verdict/reason.ts'
import { type Class, DEFAULT_REASON_BY_CLASS, toClass } from '../../engine/verdict/verdict.ts'
import { yieldToEventLoop } from '../../platform/clock.ts'

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
const CHUNK = 2_000

/** Results in the order of the list; a duplicate has the result of its first. Fewer than `max`: there are no more. */
export async function resultPage(database: Database, o: PageOptions): Promise<ResultRow[]> {
  const end = Number.MAX_SAFE_INTEGER
  if (o.classes === undefined) return rowsOf(database, { ...o, to: end })
  const last = await lastPosition(database, o.jobId)
  const found: ResultRow[] = []
  const chunk = nextChunk(database, CHUNK)
  for (let after = o.after; after < last && found.length < o.max; after += chunk) {
    const rest = { ...o, after, to: after + chunk, max: o.max - found.length }
    found.push(...(await rowsOf(database, rest)))
    // A class that is rare in a long list would else hold everybody up.
    await yieldToEventLoop()
  }
  return found
}

export type FindOptions = PageOptions & {
  readonly reasons?: readonly Reason[]
  /** A part of the address, in any case. */
  readonly search?: string
  /** Rows that are looked at, at most. */
  readonly scannedMax?: number
}

export type Found = {
  /** Without what came with them. */
  readonly rows: readonly ResultRow[]
  /** The position behind which to look on; null: these are the last. */
  readonly next: number | null
}

/**
 * Rows in the order of the list, also those that have no result yet, if all rows are asked for. Looking for some among
 * many ends after a while, with what was found until then, be it nothing.
 */
export async function findResults(database: Database, o: FindOptions): Promise<Found> {
  const last = await lastPosition(database, o.jobId)
  const to = Math.min(last, o.after + (o.scannedMax ?? SCANNED_MAX))
  const rows: ResultRow[] = []
  let after = o.after
  // One more than is asked for tells whether there are more.
  while (after < to && rows.length <= o.max) {
    const end = Math.min(to, after + nextChunk(database))
    const part = { ...o, after, to: end, max: o.max + 1 - rows.length, withoutCells: true }
    const page = await runChunk(database, () => rowsOf(database, part))
    rows.push(...page.filter(row => holds(row, o.search)))
    after = page.length < part.max ? end : (page.at(-1)?.position ?? end)
  }
  const shown = rows.slice(0, o.max)
  if (rows.length > o.max) return { rows: shown, next: shown.at(-1)?.position ?? null }
  return { rows, next: after < last ? after : null }
}

type Part = Pick<FindOptions, 'jobId' | 'after' | 'max' | 'classes' | 'reasons' | 'search'> & {
  /** The last position that is looked at. */
  readonly to: number
  readonly withoutCells?: boolean
}

async function rowsOf({ reader }: Database, o: Part): Promise<ResultRow[]> {
  const { rows } = await sql<ResultRow>`
    select item.position as position, item.text as text,
      ${o.withoutCells ? sql`null` : sql`item.cells`} as cells,
      coalesce(item.class, first.class) as class, coalesce(item.result, first.result) as result
    from item left join item as first
      on first.job_id = item.job_id and first.position = item.same_as
    where item.job_id = ${o.jobId} and item.position > ${o.after} and item.position <= ${o.to}
      ${ofSearch(reader, o)} ${ofClass(o)} ${ofReason(reader, o)}
    order by item.position limit ${o.max}`.execute(reader)
  return rows
}

const CLASS = sql`coalesce(item.class, first.class)`
const RESULT = sql`coalesce(item.result, first.result)`

const ofClass = ({ classes }: Part) =>
  classes === undefined ? sql`` : sql`and ${CLASS} in (${sql.join(classes)})`

/** The class goes with the reason, and is told without reading JSON. */
function ofReason(db: Kysely<Schema>, { reasons }: Part): RawBuilder<unknown> {
  if (reasons === undefined) return sql``
  const classes = new Set(reasons.map(reason => toClass(VERDICT_BY_REASON[reason])))
  return sql`and ${CLASS} in (${sql.join([...classes])})
    and ${reasonIn(db, RESULT, CLASS)} in (${sql.join(reasons)})`
}

/** The reason in the JSON of a result; that of an erased one goes by its class. */
export const reasonIn = (
  db: Kysely<Schema>,
  result: RawBuilder<unknown>,
  klass: RawBuilder<unknown>,
) => {
  const plainest = Object.entries(DEFAULT_REASON_BY_CLASS).map(
    ([name, reason]) => sql`when ${sql.lit(name)} then ${sql.lit(reason)}`,
  )
  return sql<Reason>`coalesce(${textAt(db, result, ['verdict', 'reason'])},
    case ${klass} ${sql.join(plainest, sql` `)} end)`
}

/** Databases know only the case of ASCII: where others are sought, they give every text that has such, for `holds`. */
function ofSearch(db: Kysely<Schema>, { search }: Part): RawBuilder<unknown> {
  if (search === undefined) return sql``
  const sought = search.toLowerCase()
  return isAscii(sought)
    ? sql`and ${contains(db, sql`lower(item.text)`, sql`${sought}`)}`
    : sql`and ${hasNonAscii(db, sql`item.text`)}`
}

const isAscii = (text: string) => /^[\x00-\x7f]*$/.test(text)

const holds = ({ text }: ResultRow, search = '') =>
  text.toLowerCase().includes(search.toLowerCase())

/** The last row of a list; 0: it has none. */
export async function lastPosition({ reader }: Database, jobId: string): Promise<number> {
  const row = await reader
    .selectFrom('item')
    .select(eb => eb.fn.max('position').as('position'))
    .where('job_id', '=', jobId)
    .executeTakeFirst()
  return Number(row?.position ?? 0)
}
