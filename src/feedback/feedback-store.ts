import { sql } from 'kysely'
import type { Database, Trx } from '../db/database.ts'
import { type Expiry, skipLocked } from '../db/expiry.ts'
import { inArray } from '../db/sql-dialect.ts'
import type { Feedback } from './feedback.ts'
import type { FeedbackAddressTable } from './tables.ts'

export type AddressState = FeedbackAddressTable

/** Rows per statement: SQLite allows 32,766 parameters. */
const ROWS_MAX = 500

/** Adds feedback and returns the keys of the pieces that are new. */
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
          ...{ account_id: accountId, dedupe_key: row.dedupeKey, address_key: row.addressKey },
          ...{ kind: row.kind, outcome: row.outcome, code: row.code },
          ...{ enhanced_code: row.enhancedCode, text: row.text, occurred_at: row.occurredAt },
          ...{ source, created_at: now },
        })),
      )
      .onConflict(conflict => conflict.doNothing())
      .returning('dedupe_key')
      .execute()
    for (const { dedupe_key } of inserted) added.add(dedupe_key)
  }
  return added
}

/** Registers an account as one that gives feedback. */
export async function enrollAccount(trx: Trx, accountId: string, now: number): Promise<void> {
  await trx
    .insertInto('feedback_account')
    .values({ account_id: accountId, created_at: now })
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

/** Numbers of addresses of a domain by their newest outcome. */
export type DomainCount = {
  readonly domain: string
  readonly alive: number
  readonly dead: number
}

/** Adds to the counts of domains. */
export async function addDomainCounts(
  trx: Trx,
  accountId: string,
  counts: readonly DomainCount[],
): Promise<void> {
  const sorted = [...counts].sort((a, b) => (a.domain < b.domain ? -1 : 1))
  for (const chunk of chunks(sorted)) {
    await trx
      .insertInto('feedback_domain')
      .values(chunk.map(count => ({ ...count, account_id: accountId })))
      .onConflict(conflict =>
        conflict.columns(['domain', 'account_id']).doUpdateSet(eb => ({
          alive: eb('feedback_domain.alive', '+', eb.ref('excluded.alive')),
          dead: eb('feedback_domain.dead', '+', eb.ref('excluded.dead')),
        })),
      )
      .execute()
  }
}

/** Returns the counts of domains; with `accountId` null, of all accounts together. */
export async function getDomainCounts(
  db: Database['db'],
  accountId: string | null,
  domains: readonly string[],
): Promise<Map<string, DomainCount>> {
  const found = new Map<string, DomainCount>()
  for (const chunk of chunks(domains)) {
    const query = db
      .selectFrom('feedback_domain')
      .select(['domain', 'alive', 'dead'])
      .where(sql<boolean>`domain in ${inArray(db, chunk)}`)
    const own = accountId === null ? query : query.where('account_id', '=', accountId)
    for (const { domain, alive, dead } of await own.execute()) {
      const sum = found.get(domain) ?? { domain, alive: 0, dead: 0 }
      found.set(domain, { domain, alive: sum.alive + alive, dead: sum.dead + dead })
    }
  }
  return found
}

/** Verdicts with a known outcome. */
export type VerdictCount = {
  readonly period: number
  readonly reason: string
  /** '' if the operator is unknown. */
  readonly operator: string
  readonly confidence: number
  readonly correct: number
  readonly wrong: number
}

/** Adds to the counts of verdicts. */
export async function addVerdictCounts(
  trx: Trx,
  accountId: string,
  counts: readonly VerdictCount[],
): Promise<void> {
  for (const chunk of chunks(counts)) {
    await trx
      .insertInto('feedback_count')
      .values(chunk.map(count => ({ ...count, account_id: accountId })))
      .onConflict(conflict =>
        conflict
          .columns(['account_id', 'period', 'reason', 'operator', 'confidence'])
          .doUpdateSet(eb => ({
            correct: eb('feedback_count.correct', '+', eb.ref('excluded.correct')),
            wrong: eb('feedback_count.wrong', '+', eb.ref('excluded.wrong')),
          })),
      )
      .execute()
  }
}

/** Returns the counts of verdicts; with `accountId` null, of all accounts. */
export async function getVerdictCounts(
  { reader }: Database,
  accountId: string | null,
): Promise<VerdictCount[]> {
  const query = reader
    .selectFrom('feedback_count')
    .select(['period', 'reason', 'operator', 'confidence', 'correct', 'wrong'])
    .orderBy('period')
    .orderBy('reason')
    .orderBy('operator')
    .orderBy('confidence')
  return (accountId === null ? query : query.where('account_id', '=', accountId)).execute()
}

/** Deletes feedback received before a time, with the states of addresses that it was about. */
export const deleteFeedbackBefore: Expiry = async (trx, before, max) => {
  const { numAffectedRows } = await sql`
    with old as materialized (
      select account_id, dedupe_key from feedback where created_at < ${before} limit ${max}
      ${skipLocked(trx, 'feedback')})
    delete from feedback where (account_id, dedupe_key) in (select account_id, dedupe_key from old)`.execute(
    trx,
  )
  return Number(numAffectedRows ?? 0)
}

/** Deletes states of addresses that were neither verified nor reported since a time. */
export const deleteAddressStatesBefore: Expiry = async (trx, before, max) => {
  const { numAffectedRows } = await sql`
    with old as materialized (
      select address_key, account_id from feedback_address
      where coalesce(occurred_at, 0) < ${before} and coalesce(verified_at, 0) < ${before}
      limit ${max} ${skipLocked(trx, 'feedback_address')})
    delete from feedback_address
    where (address_key, account_id) in (select address_key, account_id from old)`.execute(trx)
  return Number(numAffectedRows ?? 0)
}

function* chunks<T>(all: readonly T[]): Generator<T[]> {
  for (let from = 0; from < all.length; from += ROWS_MAX) yield all.slice(from, from + ROWS_MAX)
}
