import { type RawBuilder, sql } from 'kysely'
import type { Database } from '../../db/database.ts'
import { nextChunk, runChunk, SCANNED_MAX } from '../../db/paging.ts'
import type { Reader } from '../../db/reader.ts'
import { contains, hasNonAscii, textAt } from '../../db/sql-dialect.ts'
import {
  type Action,
  type ActionPolicy,
  type Decision,
  decide,
  decideVerdict,
  listClasses,
} from '../../engine/verdict/action.ts'
import { type Reason, VERDICT_BY_REASON } from '../../engine/verdict/reason.ts'
import { decodeResult } from '../../engine/verdict/stored-result.ts'
import { type Class, DEFAULT_REASON_BY_CLASS, type Result } from '../../engine/verdict/verdict.ts'
import { yieldToEventLoop } from '../../platform/clock.ts'

export type ResultRow = {
  readonly position: number
  readonly text: string
  /** Equal for all rows with the same address. */
  readonly dedupeKey: string
  /** JSON of the data that came with the address; null if there is none. */
  readonly cells: string | null
  readonly class: Class | null
  /** The stored result (`decodeResult`); null if there is none yet. */
  readonly result: string | null
  /** See `ItemTable.previous`. */
  readonly previous: string | null
}

type PageOptions = {
  readonly jobId: string
  /** Position of the last row of the previous page. */
  readonly after: number
  readonly max: number
  /**
   * Bytes of the data that came with the addresses, after which the page ends; unlimited if left
   * out.
   */
  readonly lengthMax?: number
  /** Only rows with a result of these classes; all rows if left out. */
  readonly classes?: readonly Class[]
}

/** Rows scanned per chunk when filtering by class. */
const CHUNK = 2_000

/**
 * Returns results in list order; a duplicate has the result of its first row. No rows mean that
 * there are no more, and without `lengthMax` so do fewer than `max`.
 */
export async function resultPage(database: Database, o: PageOptions): Promise<ResultRow[]> {
  const end = Number.MAX_SAFE_INTEGER
  if (o.classes === undefined) return selectWithin(database, { ...o, to: end })
  const last = await lastPosition(database, o.jobId)
  const found: ResultRow[] = []
  const chunk = nextChunk(database, CHUNK)
  for (let after = o.after; after < last && found.length < o.max; after += chunk) {
    const rest = { ...o, after, to: after + chunk, max: o.max - found.length }
    found.push(...(await selectWithin(database, rest)))
    // The next chunk could add as much again, and this one may have ended early.
    if (o.lengthMax !== undefined && found.length > 0) break
    // Otherwise a scan for a rare class in a long list would block the event loop.
    await yieldToEventLoop()
  }
  return found
}

/** Selects rows until their data reaches `lengthMax`, which is found before any of it is read. */
async function selectWithin(database: Database, o: Part): Promise<ResultRow[]> {
  const { lengthMax } = o
  if (lengthMax === undefined) return selectRows(database, o)
  const lengths = await selectLengths(database, o)
  let [max, length] = [0, 0]
  while (max < lengths.length && length < lengthMax) length += lengths[max++] ?? 0
  return max === 0 ? [] : selectRows(database, { ...o, max })
}

type FindOptions = PageOptions &
  ScanOptions & {
    readonly reasons?: readonly Reason[]
    /** Substring of the address, case-insensitive. */
    readonly search?: string
    /** Only rows with a result that have one of these actions by the policy. */
    readonly decided?: { readonly actions: readonly Action[]; readonly policy: ActionPolicy }
  }

/** Conditions on rows. */
export type RowConditions = Pick<FindOptions, 'classes' | 'reasons' | 'search' | 'decided'>

export type Found<Row> = {
  /** Matching rows. */
  readonly rows: readonly Row[]
  /** Position after which the next search starts; null if there are no more rows. */
  readonly next: number | null
}

/**
 * Finds rows in list order, including those without a result if there is no filter for them. A
 * search ends after `scannedMax` rows and returns what was found, possibly nothing.
 */
export const findResults = (database: Database, o: FindOptions): Promise<Found<ResultRow>> =>
  scanRows(database, o, async ({ end, ...part }) => {
    const page = await selectRows(database, { ...o, ...part, to: end, withoutCells: true })
    const readTo = page.length < part.max ? end : (page.at(-1)?.position ?? end)
    return { rows: page.filter(row => matches(row, o)), readTo }
  })

export type ScanOptions = Pick<PageOptions, 'jobId' | 'after' | 'max'> & {
  /** Maximum number of rows scanned. */
  readonly scannedMax?: number
}

/**
 * Finds matching rows in list order, chunk by chunk. Ends after `scannedMax` rows and returns what
 * was found, possibly nothing. `select` returns up to `max` matches, and up to where it has read.
 */
export async function scanRows<Row extends { readonly position: number }>(
  database: Database,
  o: ScanOptions,
  select: (part: {
    readonly after: number
    readonly end: number
    readonly max: number
  }) => Promise<{ readonly rows: readonly Row[]; readonly readTo: number }>,
): Promise<Found<Row>> {
  const last = await lastPosition(database, o.jobId)
  const to = Math.min(last, o.after + (o.scannedMax ?? SCANNED_MAX))
  const rows: Row[] = []
  let after = o.after
  // One more row than requested shows whether there are more.
  while (after < to && rows.length <= o.max) {
    const end = Math.min(to, after + nextChunk(database))
    const part = { after, end, max: o.max + 1 - rows.length }
    const found = await runChunk(database, () => select(part))
    rows.push(...found.rows)
    after = found.readTo
  }
  const shown = rows.slice(0, o.max)
  if (rows.length > o.max) return { rows: shown, next: shown.at(-1)?.position ?? null }
  return { rows, next: after < last ? after : null }
}

type Part = Omit<FindOptions, 'scannedMax'> & {
  /** Last position to scan. */
  readonly to: number
  readonly withoutCells?: boolean
}

async function selectRows({ reader }: Database, o: Part): Promise<ResultRow[]> {
  const cells = o.withoutCells ? sql`null` : sql`item.cells`
  const { rows } = await sql<ResultRow>`
    select ${rowColumns(cells)} ${selection(reader, o)}`.execute(reader)
  return rows
}

const rowColumns = (cells: RawBuilder<unknown>) => sql`
  item.position as position, item.text as text, ${DEDUPE_KEY} as "dedupeKey", ${cells} as cells,
  ${CLASS} as class, ${RESULT} as result, coalesce(item.previous, first.previous) as previous`

/** The key of a row of `item` that is equal for all rows with the same address. */
const DEDUPE_KEY = sql`case item.dedupe_key when '' then item.text else item.dedupe_key end`

/** Both databases know the length of a value without reading it. */
async function selectLengths({ reader }: Database, o: Part): Promise<number[]> {
  const { rows } = await sql<{ length: number }>`
    select coalesce(octet_length(item.cells), 0) as length ${selection(reader, o)}`.execute(reader)
  return rows.map(({ length }) => Number(length))
}

const selection = (reader: Reader, o: Part) => sql`
    ${matchingRows(reader, o)}
    order by item.position limit ${o.max}`

/** Rows of the job after a position, up to another, that match the conditions. */
type RowRange = RowConditions & Pick<Part, 'jobId' | 'after' | 'to'>

/** Selects rows, with the row of `first` whose result a duplicate has. */
export const matchingRows = (reader: Reader, o: RowRange) => sql`
    from item left join item as first
      on first.job_id = item.job_id and first.position = item.same_as
    where item.job_id = ${o.jobId} and item.position > ${o.after} and item.position <= ${o.to}
      ${searchCondition(reader, o)} ${classCondition(o)} ${reasonCondition(reader, o)}
      ${actionCondition(o)}`

/** The class and the result of a row of `matchingRows`. */
export const CLASS = sql`coalesce(item.class, first.class)`
export const RESULT = sql`coalesce(item.result, first.result)`

const classCondition = ({ classes }: RowConditions) =>
  classes === undefined ? sql`` : sql`and ${CLASS} in (${sql.join(classes)})`

/** Filters by the classes of the reasons first, because a class is read without parsing JSON. */
function reasonCondition(db: Reader, { reasons }: RowConditions): RawBuilder<unknown> {
  if (reasons === undefined) return sql``
  const classes = new Set(reasons.flatMap(classesOf))
  return sql`and ${CLASS} in (${sql.join([...classes])})
    and ${reasonIn(db, RESULT, CLASS)} in (${sql.join(reasons)})`
}

/** Selects the classes that can have the actions; `matches` filters their rows. */
function actionCondition({ decided }: RowConditions): RawBuilder<unknown> {
  if (decided === undefined) return sql``
  const classes = listClasses(decided.actions, decided.policy)
  return sql`and ${CLASS} in (${sql.join(classes)})`
}

/** A catch-all address is deliverable if feedback says so. */
const classesOf = (reason: Reason): Class[] =>
  reason === 'catch_all' ? ['risky', 'deliverable'] : [VERDICT_BY_REASON[reason].class]

/**
 * Returns the reason in the JSON of a result; for an erased result, the default reason of its
 * class.
 */
export const reasonIn = (db: Reader, result: RawBuilder<unknown>, klass: RawBuilder<unknown>) => {
  const defaults = Object.entries(DEFAULT_REASON_BY_CLASS).map(
    ([name, reason]) => sql`when ${sql.lit(name)} then ${sql.lit(reason)}`,
  )
  return sql<Reason>`coalesce(${textAt(db, result, ['verdict', 'reason'])},
    case ${klass} ${sql.join(defaults, sql` `)} end)`
}

/**
 * Databases ignore case only in ASCII: if the search has other characters, this selects every text
 * that has some, and `matches` filters them.
 */
function searchCondition(db: Reader, { search }: RowConditions): RawBuilder<unknown> {
  if (search === undefined) return sql``
  const needle = search.toLowerCase()
  return isAscii(needle)
    ? sql`and ${contains(db, sql`lower(item.text)`, sql`${needle}`)}`
    : sql`and ${hasNonAscii(db, sql`item.text`)}`
}

const isAscii = (text: string) => /^[\x00-\x7f]*$/.test(text)

/** The part of a row that conditions need; `result` only for actions. */
type ComparedRow = Pick<ResultRow, 'text'> & Partial<Pick<ResultRow, 'class' | 'result'>>

/** Whether a row matches what no condition in SQL decides: the search, and the action. */
export const matches = (row: ComparedRow, { search = '', decided }: RowConditions): boolean =>
  row.text.toLowerCase().includes(search.toLowerCase()) &&
  (decided === undefined || hasAction(row, decided))

function hasAction(
  { class: klass, result: stored }: ComparedRow,
  { actions, policy }: NonNullable<RowConditions['decided']>,
): boolean {
  if (klass == null || stored == null) return false
  return actions.includes(decideStored(decodeResult(stored), klass, policy).action)
}

/** The decision on a stored result; of an erased one, on the default reason of its class. */
export function decideStored(result: Result | null, klass: Class, policy: ActionPolicy): Decision {
  if (result !== null) return decide(result, policy)
  const reason = DEFAULT_REASON_BY_CLASS[klass]
  return decideVerdict({ reason, risk: VERDICT_BY_REASON[reason].risk }, policy)
}

/** Reads rows by their positions, without their cells, in this order; missing ones are left out. */
export async function readRows(
  { reader }: Database,
  jobId: string,
  positions: readonly number[],
): Promise<ResultRow[]> {
  if (positions.length === 0) return []
  const { rows } = await sql<ResultRow>`
    select ${rowColumns(sql`null`)}
    from item left join item as first
      on first.job_id = item.job_id and first.position = item.same_as
    where item.job_id = ${jobId} and item.position in (${sql.join(positions)})`.execute(reader)
  const byPosition = new Map(rows.map(row => [Number(row.position), row]))
  return positions.flatMap(position => byPosition.get(position) ?? [])
}

/** Returns the position of the last row of a list; 0 if it has no rows. */
export async function lastPosition({ reader }: Database, jobId: string): Promise<number> {
  const row = await reader
    .selectFrom('item')
    .select(eb => eb.fn.max('position').as('position'))
    .where('job_id', '=', jobId)
    .executeTakeFirst()
  return Number(row?.position ?? 0)
}
