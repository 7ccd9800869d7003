import { sql, type Transaction } from 'kysely'
import type { Database } from '../database.ts'
import type { JobType, Schema, VerificationTable } from '../schema.ts'

export type Verification = VerificationTable

/** Adds verifications; one that is there already stays, so that what failed midway can be written again. */
export async function addHistory(
  trx: Transaction<Schema>,
  rows: readonly Verification[],
): Promise<void> {
  if (rows.length === 0) return
  await sql`
    insert into verification (${sql.join(COLUMNS.map(name => sql.ref(name)))})
    select ${sql.join(COLUMNS.map(name => sql`value ->> ${sql.lit(name)}`))}
    from json_each(${JSON.stringify(rows)}) where true
    on conflict (id) do nothing`.execute(trx)
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

export type HistoryQuery = {
  readonly accountId: string
  readonly sandbox: boolean
  /** The last row of the page before. */
  readonly before: { readonly createdAt: number; readonly id: string } | null
  readonly max: number
  readonly email?: string
  readonly reason?: string
  readonly source?: JobType
}

/** The history of an account, the newest first. */
export function historyPage({ db }: Database, o: HistoryQuery): Promise<Verification[]> {
  let query = db
    .selectFrom('verification')
    .selectAll()
    .where('account_id', '=', o.accountId)
    .where('sandbox', '=', o.sandbox ? 1 : 0)
  if (o.before !== null) {
    const { createdAt, id } = o.before
    query = query.where(sql<boolean>`(created_at, id) < (${createdAt}, ${id})`)
  }
  if (o.email !== undefined) query = query.where(sql`lower(email)`, '=', o.email.toLowerCase())
  if (o.reason !== undefined) query = query.where('reason', '=', o.reason)
  if (o.source !== undefined) query = query.where('source', '=', o.source)
  return query.orderBy('created_at', 'desc').orderBy('id', 'desc').limit(o.max).execute()
}

/** Removes at most `max` of the verifications before a time, epoch ms; gives how many. */
export async function deleteHistoryBefore(
  trx: Transaction<Schema>,
  before: number,
  max = Number.MAX_SAFE_INTEGER,
): Promise<number> {
  const { numDeletedRows } = await trx
    .deleteFrom('verification')
    .where('id', 'in', query =>
      query.selectFrom('verification').select('id').where('created_at', '<', before).limit(max),
    )
    .executeTakeFirstOrThrow()
  return Number(numDeletedRows)
}

/** Whether a verification is in the history. */
export async function hasVerification(trx: Transaction<Schema>, id: string): Promise<boolean> {
  const row = await trx
    .selectFrom('verification')
    .select('id')
    .where('id', '=', id)
    .executeTakeFirst()
  return row !== undefined
}
