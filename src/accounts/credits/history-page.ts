import { type Kysely, type RawBuilder, sql } from 'kysely'
import { inChunk, nextChunk, SCANNED_MAX } from '../../db/chunked-scan.ts'
import type { Database } from '../../db/database.ts'
import type { Schema } from '../../db/schema.ts'
import { contains, hasForeign } from '../../db/sql-dialect.ts'
import type { Class } from '../../engine/verdict/verdict.ts'
import type { VerificationSource } from '../tables.ts'
import type { Verification } from './history.ts'

/** A row of the history, by what it is in order of. */
export type HistoryPosition = { readonly createdAt: number; readonly id: string }

export type HistoryQuery = {
  readonly accountId: string
  readonly sandbox: boolean
  /** Behind which place the page begins; null: with the newest. */
  readonly before: HistoryPosition | null
  readonly max: number
  /** One address, in any case. */
  readonly email?: string
  /** A part of the address, in any case. */
  readonly search?: string
  readonly reason?: string
  readonly source?: VerificationSource
  readonly classes?: readonly Class[]
  /** From this time on, and before that one, epoch ms. */
  readonly since?: number
  readonly until?: number
  /** Rows that are looked at, at most. */
  readonly scannedMax?: number
}

export type HistoryPage = {
  readonly rows: readonly Verification[]
  /** The place behind which to look on; null: these are the last. */
  readonly next: HistoryPosition | null
}

/**
 * The history of an account, the newest first. Looking for some among many ends after a while, with what was found
 * until then, be it nothing.
 */
export async function historyPage(database: Database, o: HistoryQuery): Promise<HistoryPage> {
  let before = startOf(o)
  if (!matchesFilter(o)) {
    return fullPage(await rowsBetween(database, { ...o, max: o.max + 1 }, { before }), o.max)
  }
  const rows: Verification[] = []
  let left = o.scannedMax ?? SCANNED_MAX
  // One more than is asked for tells whether there are more.
  while (left > 0 && rows.length <= o.max) {
    const part = { ...o, max: o.max + 1 - rows.length }
    const chunk = { before, size: Math.min(left, nextChunk(database)) }
    const { found, end } = await inChunk(database, () => scan(database, part, chunk))
    rows.push(...found.filter(row => holds(row, o)))
    left -= chunk.size
    const last = found.length < part.max ? null : found.at(-1)
    before = last ? placeOf(last) : end
    if (before === null) break
  }
  return rows.length > o.max ? fullPage(rows, o.max) : { rows, next: before }
}

const matchesFilter = ({ email, search, reason, source, classes }: HistoryQuery) =>
  [email, search, reason, source, classes].some(one => one !== undefined)

/** The time is told as a place: of two ends SQLite would go by one, and look for the other row by row. */
function startOf({ before, until }: HistoryQuery): HistoryPosition | null {
  if (until === undefined || (before !== null && before.createdAt < until)) return before
  return { createdAt: until, id: '' }
}

/** Of rows that were read with one more than `max`, if there are so many. */
function fullPage(read: readonly Verification[], max: number): HistoryPage {
  const rows = read.slice(0, max)
  const last = rows.at(-1)
  return { rows, next: read.length > max && last !== undefined ? placeOf(last) : null }
}

const placeOf = ({ created_at, id }: Verification): HistoryPosition => ({
  createdAt: created_at,
  id,
})

/** What is chosen of the next `size` rows, and where these end; null: there are no more. */
async function scan(
  database: Database,
  o: HistoryQuery,
  { before, size }: { before: HistoryPosition | null; size: number },
) {
  const { rows } = await sql<HistoryPosition>`
    select created_at as "createdAt", id from verification
    where ${within(o, { before })} order by created_at desc, id desc limit 1 offset ${size - 1}
  `.execute(database.reader)
  const end = rows[0] ?? null
  return { found: await rowsBetween(database, o, { before, end }), end }
}

type Between = { readonly before: HistoryPosition | null; readonly end?: HistoryPosition | null }

async function rowsBetween(
  { reader }: Database,
  o: HistoryQuery,
  between: Between,
): Promise<Verification[]> {
  const { rows } = await sql<Verification>`
    select * from verification where ${within(o, between)} ${chosen(reader, o)}
    order by created_at desc, id desc limit ${o.max}`.execute(reader)
  return rows
}

function within(o: HistoryQuery, { before, end = null }: Between): RawBuilder<unknown> {
  const deps = [
    sql`account_id = ${o.accountId} and sandbox = ${o.sandbox ? 1 : 0}`,
    ...(before === null ? [] : [sql`(created_at, id) < (${before.createdAt}, ${before.id})`]),
    ...(end === null ? [] : [sql`(created_at, id) >= (${end.createdAt}, ${end.id})`]),
    // Whatever ends a stretch is no older.
    ...(o.since === undefined || end !== null ? [] : [sql`created_at >= ${o.since}`]),
  ]
  return sql.join(deps, sql` and `)
}

function chosen(
  db: Kysely<Schema>,
  { email, search, reason, source, classes }: HistoryQuery,
): RawBuilder<unknown> {
  const isEmail = (sought: string) => sql`lower(email) = ${sought}`
  const hasPart = (sought: string) => contains(db, sql`lower(email)`, sql`${sought}`)
  const deps = [
    ...(email === undefined ? [] : [textTest(db, email, isEmail)]),
    ...(search === undefined ? [] : [textTest(db, search, hasPart)]),
    ...(reason === undefined ? [] : [sql`reason = ${reason}`]),
    ...(source === undefined ? [] : [sql`source = ${source}`]),
    ...(classes === undefined ? [] : [sql`class in (${sql.join(classes)})`]),
  ]
  return deps.length === 0 ? sql`` : sql`and ${sql.join(deps, sql` and `)}`
}

/** Databases know only the case of ASCII: where others are sought, they give every text that has such, for `holds`. */
function textTest(
  db: Kysely<Schema>,
  text: string,
  test: (sought: string) => RawBuilder<unknown>,
): RawBuilder<unknown> {
  const sought = text.toLowerCase()
  return isAscii(sought) ? test(sought) : hasForeign(db, sql`email`)
}

const isAscii = (text: string) => Buffer.byteLength(text) === text.length

function holds(row: Verification, { email, search = '' }: HistoryQuery): boolean {
  const text = row.email.toLowerCase()
  return (
    (email === undefined || text === email.toLowerCase()) && text.includes(search.toLowerCase())
  )
}
