import { CompiledQuery, type Kysely, sql, type Transaction } from 'kysely'
import { type Database, writeConcurrent } from '../../db/database.ts'
import type { Schema } from '../../db/schema.ts'
import { isPostgres, jsonRows, typedRows } from '../../db/sql-dialect.ts'
import { MINUTE, yieldToEventLoop } from '../../platform/clock.ts'
import type { VerificationTable } from '../tables.ts'

export type Verification = VerificationTable

/**
 * Adds verifications. One that exists already is skipped, so that a write that failed midway can be
 * repeated.
 */
export async function addHistory(
  trx: Transaction<Schema>,
  rows: readonly Verification[],
): Promise<void> {
  if (isPostgres(trx)) return addInOneStatement(trx, rows)
  for (let from = 0; from < rows.length; ) {
    const size = SIZES.find(one => one <= rows.length - from) ?? 1
    const values = rows.slice(from, from + size).flatMap(row => COLUMNS.map(name => row[name]))
    await trx.executeQuery(CompiledQuery.raw(insertSql(size), values))
    from += size
  }
}

/**
 * Rows per statement. A statement of many rows costs a third of one statement per row, and a
 * quarter of one JSON parameter; few sizes keep few prepared statements.
 */
const SIZES = [50, 10, 4, 1]

function insertSql(size: number): string {
  const row = `(${COLUMNS.map(() => '?').join(', ')})`
  const rows = Array.from({ length: size }, () => row).join(', ')
  return `insert into verification (${COLUMNS.join(', ')}) values ${rows} on conflict do nothing`
}

/**
 * One round trip and one statement text for any number of rows. `on conflict` logs each row a second
 * time, as confirmed; without it, a write that is repeated while the first is still being committed
 * would fail.
 */
async function addInOneStatement(
  trx: Transaction<Schema>,
  rows: readonly Verification[],
): Promise<void> {
  if (rows.length === 0) return
  const columns = sql.raw(COLUMNS.join(', '))
  const types = COLUMNS.map(name => `${name} ${TYPES[name] ?? 'text'}`).join(', ')
  await sql`
    insert into verification (${columns})
    select ${columns} from ${typedRows(rows, types)}
    on conflict do nothing`.execute(trx)
}

/** The types of the columns that are not text. */
const TYPES: { readonly [Name in keyof Verification]?: string } = {
  valid: 'integer',
  deliverable: 'integer',
  cached: 'integer',
  sandbox: 'integer',
  created_at: 'bigint',
}

const COLUMNS = [
  'id',
  'account_id',
  'key_id',
  'email',
  'valid',
  'deliverable',
  'risk_level',
  'reason',
  'class',
  'cached',
  'source',
  'job_id',
  'sandbox',
  'created_at',
] as const satisfies readonly (keyof Verification)[]

/** Deletes at most `max` verifications from before a time, epoch ms. Returns how many. */
export async function deleteHistoryBefore(
  trx: Transaction<Schema>,
  before: number,
  max = Number.MAX_SAFE_INTEGER,
): Promise<number> {
  const { numAffectedRows = 0n } = await sql`
    delete from verification where (account_id, sandbox, created_at, id) in (
      select account_id, sandbox, created_at, id from verification
      where created_at < ${before} and id <> '' order by created_at limit ${max})`.execute(trx)
  return Number(numAffectedRows)
}

/**
 * Deletes at most `max` sandbox verifications from before a time, epoch ms. Returns how many. It
 * goes account by account along the primary key, because the index by age also has three months of
 * live ones.
 */
export async function deleteSandboxHistoryBefore(
  trx: Transaction<Schema>,
  before: number,
  max: number,
): Promise<number> {
  const isOld = sql`verification.account_id = account.id and verification.sandbox = 1
    and verification.created_at < ${before}`
  // PostgreSQL chooses the order of a join; before 18 it would read all verifications.
  const old = isPostgres(trx)
    ? sql`account cross join lateral (
        select * from verification where ${isOld} order by created_at, id limit ${max}
      ) as verification`
    : sql`account cross join verification where ${isOld}`
  const { numAffectedRows = 0n } = await sql`
    delete from verification where (account_id, sandbox, created_at, id) in (
      select verification.account_id, verification.sandbox, verification.created_at, verification.id
      from ${old} limit ${max})`.execute(trx)
  return Number(numAffectedRows)
}

/** Rows scanned at a time; on SQLite this blocks other writers. */
const SCANNED_MAX = 2_000
/** Margin for results that are written after the job has finished, and for clock changes. */
const SLACK_MS = MINUTE

type VerifiedJob = {
  readonly id: string
  readonly account_id: string | null
  readonly sandbox: number
  readonly created_at: number
  readonly finished_at: number | null
}

/**
 * Deletes the history of one job, page by page; usage and credits keep their counts. The history
 * has no index by job, which every verification would pay for, so the times of the job bound the
 * scan.
 */
export async function deleteJobHistory(database: Database, job: VerifiedJob): Promise<void> {
  const { id, account_id: accountId, sandbox, created_at, finished_at } = job
  if (accountId === null) return
  let after = { created_at: created_at - SLACK_MS, id: '' }
  const until = (finished_at ?? database.clock.now()) + SLACK_MS
  for (;;) {
    const page = await database.db
      .selectFrom('verification')
      .select(['created_at', 'id', 'job_id'])
      .where('account_id', '=', accountId)
      .where('sandbox', '=', sandbox)
      .where(sql<boolean>`(created_at, id) > (${after.created_at}, ${after.id})`)
      .where('created_at', '<=', until)
      .orderBy('created_at')
      .orderBy('id')
      .limit(SCANNED_MAX)
      .execute()
    const ofJob = page.filter(row => row.job_id === id || row.id === id)
    if (ofJob.length > 0) {
      await writeConcurrent(database, trx => deleteRows(trx, { accountId, sandbox, rows: ofJob }))
    }
    const last = page.at(-1)
    if (last === undefined || page.length < SCANNED_MAX) return
    after = last
    await yieldToEventLoop()
  }
}

async function deleteRows(
  trx: Transaction<Schema>,
  o: {
    accountId: string
    sandbox: number
    rows: readonly Pick<Verification, 'created_at' | 'id'>[]
  },
): Promise<void> {
  await sql`
    delete from verification where account_id = ${o.accountId} and sandbox = ${o.sandbox}
      and (created_at, id) in (select cast(value ->> 'created_at' as bigint), value ->> 'id'
        from ${jsonRows(trx, o.rows)})`.execute(trx)
}

/** Whether the history has a verification. */
export async function hasVerification(
  db: Kysely<Schema>,
  o: { accountId: string; sandbox: boolean; createdAt: number; id: string },
): Promise<boolean> {
  const row = await db
    .selectFrom('verification')
    .select('id')
    .where('account_id', '=', o.accountId)
    .where('sandbox', '=', o.sandbox ? 1 : 0)
    .where('created_at', '=', o.createdAt)
    .where('id', '=', o.id)
    .executeTakeFirst()
  return row !== undefined
}
