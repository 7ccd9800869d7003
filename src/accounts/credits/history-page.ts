import { type RawBuilder, sql } from 'kysely'
import type { Database } from '../../db/database.ts'
import {
  isAfter,
  nextChunk,
  type PagePosition,
  pageStart,
  runChunk,
  SCANNED_MAX,
} from '../../db/paging.ts'
import type { Reader } from '../../db/reader.ts'
import { contains, hasNonAscii } from '../../db/sql-dialect.ts'
import type { Class } from '../../engine/verdict/verdict.ts'
import type { VerificationSource } from '../tables.ts'
import type { Verification } from './history.ts'

export type HistoryQuery = {
  readonly accountId: string
  readonly sandbox: boolean
  /** The page starts after this position; null: with the newest row. */
  readonly before: PagePosition | null
  readonly max: number
  /** An exact address, case-insensitive. */
  readonly email?: string
  /** A substring of the address, case-insensitive. */
  readonly search?: string
  readonly reason?: string
  readonly source?: VerificationSource
  readonly classes?: readonly Class[]
  /** Epoch ms, `since` inclusive and `until` exclusive. */
  readonly since?: number
  readonly until?: number
  /** Maximum rows to scan. */
  readonly scannedMax?: number
}

type HistoryPage = {
  readonly rows: readonly Verification[]
  /** The position to continue after; null on the last page. */
  readonly next: PagePosition | null
}

/**
 * Returns a page of the history of an account, newest first. A search with filters stops after
 * `scannedMax` rows and returns what it has found, which may be nothing.
 */
export async function getHistoryPage(
  database: Database,
  query: HistoryQuery,
): Promise<HistoryPage> {
  let before = pageStart(query)
  if (!matchesFilter(query)) {
    return fullPage(
      await rowsBetween(database, { ...query, max: query.max + 1 }, { before }),
      query.max,
    )
  }
  const rows: Verification[] = []
  let left = query.scannedMax ?? SCANNED_MAX
  // One row more than requested shows whether there are more.
  while (left > 0 && rows.length <= query.max) {
    const part = { ...query, max: query.max + 1 - rows.length }
    const chunk = { before, size: Math.min(left, nextChunk(database)) }
    const { found, end } = await runChunk(database, () => scan(database, part, chunk))
    rows.push(...found.filter(row => matches(row, query)))
    left -= chunk.size
    const last = found.length < part.max ? null : found.at(-1)
    before = last ? toPosition(last) : end
    if (before === null) break
  }
  return rows.length > query.max ? fullPage(rows, query.max) : { rows, next: before }
}

const matchesFilter = ({ email, search, reason, source, classes }: HistoryQuery) =>
  [email, search, reason, source, classes].some(one => one !== undefined)

/** Builds a page from up to `max` + 1 rows. */
function fullPage(read: readonly Verification[], max: number): HistoryPage {
  const rows = read.slice(0, max)
  const last = rows.at(-1)
  return { rows, next: read.length > max && last !== undefined ? toPosition(last) : null }
}

const toPosition = ({ created_at, id }: Verification): PagePosition => ({
  createdAt: created_at,
  id,
})

/**
 * Returns the matching rows among the next `size`, and the position where these end; `end` is null
 * if there are no more.
 */
async function scan(
  database: Database,
  query: HistoryQuery,
  { before, size }: { before: PagePosition | null; size: number },
) {
  const { rows } = await sql<PagePosition>`
    select created_at as "createdAt", id from verification
    where ${rangeSql(query, { before })} order by created_at desc, id desc limit 1 offset ${size - 1}
  `.execute(database.reader)
  const end = rows[0] ?? null
  return { found: await rowsBetween(database, query, { before, end }), end }
}

type Between = { readonly before: PagePosition | null; readonly end?: PagePosition | null }

async function rowsBetween(
  { reader }: Database,
  query: HistoryQuery,
  between: Between,
): Promise<Verification[]> {
  const { rows } = await sql<Verification>`
    select * from verification where ${rangeSql(query, between)} ${filterSql(reader, query)}
    order by created_at desc, id desc limit ${query.max}`.execute(reader)
  return rows
}

function rangeSql(query: HistoryQuery, { before, end = null }: Between): RawBuilder<unknown> {
  const conditions = [
    sql`account_id = ${query.accountId} and sandbox = ${query.sandbox ? 1 : 0}`,
    ...(before === null ? [] : [isAfter(before)]),
    ...(end === null ? [] : [sql`(created_at, id) >= (${end.createdAt}, ${end.id})`]),
    // The end of a chunk is never older than `since`.
    ...(query.since === undefined || end !== null ? [] : [sql`created_at >= ${query.since}`]),
  ]
  return sql.join(conditions, sql` and `)
}

function filterSql(
  db: Reader,
  { email, search, reason, source, classes }: HistoryQuery,
): RawBuilder<unknown> {
  const isEmail = (text: string) => sql`lower(email) = ${text}`
  const hasPart = (text: string) => contains(db, sql`lower(email)`, sql`${text}`)
  const conditions = [
    ...(email === undefined ? [] : [textTest(db, email, isEmail)]),
    ...(search === undefined ? [] : [textTest(db, search, hasPart)]),
    ...(reason === undefined ? [] : [sql`reason = ${reason}`]),
    ...(source === undefined ? [] : [sql`source = ${source}`]),
    ...(classes === undefined ? [] : [sql`class in (${sql.join(classes)})`]),
  ]
  return conditions.length === 0 ? sql`` : sql`and ${sql.join(conditions, sql` and `)}`
}

/**
 * Databases fold the case of ASCII only: for any other text the SQL selects all rows with non-ASCII
 * addresses, and `matches` filters them.
 */
function textTest(
  db: Reader,
  text: string,
  test: (lowerCase: string) => RawBuilder<unknown>,
): RawBuilder<unknown> {
  const lowerCase = text.toLowerCase()
  return isAscii(lowerCase) ? test(lowerCase) : hasNonAscii(db, sql`email`)
}

const isAscii = (text: string) => Buffer.byteLength(text) === text.length

function matches(row: Verification, { email, search = '' }: HistoryQuery): boolean {
  const text = row.email.toLowerCase()
  return (
    (email === undefined || text === email.toLowerCase()) && text.includes(search.toLowerCase())
  )
}
