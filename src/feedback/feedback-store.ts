import { sql } from 'kysely'
import type { Database, Trx } from '../db/database.ts'
import { createExpiry, type Expiry, skipLocked } from '../db/paging.ts'
import { inArray } from '../db/sql-dialect.ts'
import type { Feedback } from './feedback.ts'
import { chunks } from './feedback-counts.ts'
import type { FeedbackAddressTable } from './tables.ts'

export type AddressState = FeedbackAddressTable

/** Adds feedback of an enrolled account and returns the keys of the pieces that are new. */
export async function insertFeedback(
  trx: Trx,
  rows: readonly Feedback[],
  { accountId, source, now }: { accountId: string; source: string; now: number },
): Promise<Set<string>> {
  const added = new Set<string>()
  for (const chunk of chunks(rows)) {
    const inserted = await trx
      .insertInto('feedback')
      .values(
        chunk.map(row => ({
          account_id: accountId,
          dedupe_key: row.dedupeKey,
          address_key: row.addressKey,
          kind: row.kind,
          outcome: row.outcome,
          code: row.code,
          enhanced_code: row.enhancedCode,
          text: row.text,
          occurred_at: row.occurredAt,
          source,
          created_at: now,
        })),
      )
      .onConflict(conflict => conflict.doNothing())
      .returning('dedupe_key')
      .execute()
    for (const { dedupe_key } of inserted) added.add(dedupe_key)
  }
  await changeStoredPieces(trx, accountId, added.size)
  return added
}

/** Returns how many of these keys an account has. */
export async function countKnown(
  trx: Trx,
  accountId: string,
  keys: readonly string[],
): Promise<number> {
  let count = 0
  for (const chunk of chunks(keys)) {
    const known = await trx
      .selectFrom('feedback')
      .select('dedupe_key')
      .where('account_id', '=', accountId)
      .where(sql<boolean>`dedupe_key in ${inArray(trx, chunk)}`)
      .execute()
    count += known.length
  }
  return count
}

/** Returns how many pieces an account stores. */
export async function getStoredPieces(db: Database['reader'], accountId: string): Promise<number> {
  const row = await db
    .selectFrom('feedback_account')
    .select('pieces')
    .where('account_id', '=', accountId)
    .executeTakeFirst()
  return Number(row?.pieces ?? 0)
}

/** Subtracts deleted pieces, each given by its account. */
export async function subtractStoredPieces(trx: Trx, accountIds: readonly string[]): Promise<void> {
  const byAccount = [...Map.groupBy(accountIds, id => id)].sort(([a], [b]) => (a < b ? -1 : 1))
  for (const [accountId, all] of byAccount) await changeStoredPieces(trx, accountId, -all.length)
}

async function changeStoredPieces(trx: Trx, accountId: string, by: number): Promise<void> {
  if (by === 0) return
  await trx
    .updateTable('feedback_account')
    .set(eb => ({ pieces: eb('pieces', '+', by) }))
    .where('account_id', '=', accountId)
    .execute()
}

/** Registers an account as one that gives feedback. */
export async function enrollAccount(trx: Trx, accountId: string, now: number): Promise<void> {
  await trx
    .insertInto('feedback_account')
    .values({ account_id: accountId, created_at: now, pieces: 0 })
    .onConflict(conflict => conflict.doNothing())
    .execute()
}

/** Returns the accounts that give feedback. */
export async function listEnrolledAccounts({ reader }: Database): Promise<string[]> {
  const rows = await reader.selectFrom('feedback_account').select('account_id').execute()
  return rows.map(({ account_id }) => account_id)
}

/** Returns what is known about addresses; with `accountId` null, from all accounts. */
export async function getAddressStates(
  db: Database['db'],
  accountId: string | null,
  keys: readonly string[],
): Promise<AddressState[]> {
  const all: AddressState[] = []
  for (const chunk of chunks(keys)) {
    const query = db
      .selectFrom('feedback_address')
      .selectAll()
      .where(sql<boolean>`address_key in ${inArray(db, chunk)}`)
    const own = accountId === null ? query : query.where('account_id', '=', accountId)
    all.push(...(await own.execute()))
  }
  return all
}

type StateColumn = keyof AddressState

const FEEDBACK_COLUMNS = [
  ...(['outcome', 'kind', 'code', 'enhanced_code', 'text', 'occurred_at'] as const),
  ...(['contradicted', 'counted'] as const),
] satisfies StateColumn[]
const VERDICT_COLUMNS = [
  ...(['reason', 'operator', 'confidence', 'deliverable', 'verified_at', 'counted'] as const),
  'reply',
] satisfies StateColumn[]

/** Writes the feedback of addresses. */
export const putOutcomes = (trx: Trx, states: readonly AddressState[]) =>
  putStates(trx, states, FEEDBACK_COLUMNS)

/** Writes the last verdicts of addresses, which later feedback is compared with. */
export const putVerdicts = (trx: Database['db'], states: readonly AddressState[]) =>
  putStates(trx, states, VERDICT_COLUMNS)

/** Inserts states, or updates some columns. All writers lock rows in the order of their keys. */
async function putStates(
  trx: Database['db'],
  states: readonly AddressState[],
  columns: readonly StateColumn[],
): Promise<void> {
  const sorted = [...states].sort((a, b) => (a.address_key < b.address_key ? -1 : 1))
  const updates = Object.fromEntries(columns.map(name => [name, sql`excluded.${sql.ref(name)}`]))
  for (const chunk of chunks(sorted)) {
    await trx
      .insertInto('feedback_address')
      .values(chunk)
      .onConflict(conflict => conflict.columns(['address_key', 'account_id']).doUpdateSet(updates))
      .execute()
  }
}

/** Deletes feedback received before a time, with the states of addresses that it was about. */
export const deleteFeedbackBefore: Expiry = async (trx, before, max) => {
  const { rows } = await sql<{ account_id: string }>`
    with old as materialized (
      select account_id, dedupe_key from feedback where created_at < ${before} limit ${max}
      ${skipLocked(trx, 'feedback')})
    delete from feedback where (account_id, dedupe_key) in (select account_id, dedupe_key from old)
    returning account_id`.execute(trx)
  await subtractStoredPieces(
    trx,
    rows.map(({ account_id }) => account_id),
  )
  return rows.length
}

/** Deletes states of addresses that were neither verified nor reported since a time. */
export const deleteAddressStatesBefore = createExpiry(
  'feedback_address',
  ['address_key', 'account_id'],
  before => sql`coalesce(occurred_at, 0) < ${before} and coalesce(verified_at, 0) < ${before}`,
)
