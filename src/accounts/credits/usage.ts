import { sql, type Transaction } from 'kysely'
import type { Database } from '../../db/database.ts'
import type { Schema } from '../../db/schema.ts'
import type { UsageTable } from '../tables.ts'

export type Usage = UsageTable

/** Adds usage, by account, key, day and class. */
export async function addUsage(trx: Transaction<Schema>, rows: readonly Usage[]): Promise<void> {
  if (rows.length === 0) return
  await trx
    .insertInto('usage')
    .values(mergeRows(rows))
    .onConflict(conflict =>
      conflict.columns(['account_id', 'day', 'key_id', 'class']).doUpdateSet({
        verifications: sql`usage.verifications + excluded.verifications`,
        cached: sql`usage.cached + excluded.cached`,
        credits: sql`usage.credits + excluded.credits`,
      }),
    )
    .execute()
}

/**
 * Merges rows with the same key, because a statement updates each row only once, and sorts them, so
 * that concurrent writers lock rows in the same order and cannot deadlock.
 */
function mergeRows(rows: readonly Usage[]): Usage[] {
  const sums = new Map<string, Usage>()
  for (const row of rows) {
    const key = [row.account_id, row.day, row.key_id, row.class].join(' ')
    const sum = sums.get(key)
    sums.set(key, sum === undefined ? row : addRows(sum, row))
  }
  return [...sums].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, sum]) => sum)
}

const addRows = (sum: Usage, row: Usage): Usage => ({
  ...sum,
  verifications: sum.verifications + row.verifications,
  cached: sum.cached + row.cached,
  credits: sum.credits + row.credits,
})

/** Returns the usage of an account on the days from `from` until before `to`, epoch ms, by day. */
export function listUsage(
  { db }: Database,
  o: { readonly accountId: string; readonly from: number; readonly to: number },
): Promise<Usage[]> {
  return db
    .selectFrom('usage')
    .selectAll()
    .where('account_id', '=', o.accountId)
    .where('day', '>=', o.from)
    .where('day', '<', o.to)
    .orderBy('day')
    .orderBy('key_id')
    .orderBy('class')
    .execute()
}

type TotalUsage = {
  readonly class: string
  readonly verifications: number
  /** How many of these came from the cache. */
  readonly cached: number
}

/** Returns the verifications of all accounts, by class. */
export async function getTotalUsage({ db }: Database): Promise<TotalUsage[]> {
  const rows = await db
    .selectFrom('usage')
    .select(eb => [
      'class',
      eb.fn.sum<number>('verifications').as('verifications'),
      eb.fn.sum<number>('cached').as('cached'),
    ])
    .groupBy('class')
    .execute()
  return rows.map(row => ({
    class: row.class,
    verifications: Number(row.verifications),
    cached: Number(row.cached),
  }))
}
