import { sql, type Transaction } from 'kysely'
import type { Database } from '../database.ts'
import type { Schema } from '../schema.ts'
import type { UsageTable } from './tables.ts'

export type Usage = UsageTable

/** Adds to what was used, by account, key, day and class. */
export async function countUsage(trx: Transaction<Schema>, rows: readonly Usage[]): Promise<void> {
  for (const row of rows) {
    await trx
      .insertInto('usage')
      .values(row)
      .onConflict(conflict =>
        conflict.columns(['account_id', 'day', 'key_id', 'class']).doUpdateSet({
          verifications: sql`usage.verifications + excluded.verifications`,
          cached: sql`usage.cached + excluded.cached`,
          credits: sql`usage.credits + excluded.credits`,
        }),
      )
      .execute()
  }
}

/** What an account used on the days from `from` to before `to`, epoch ms, by day. */
export function usageOf(
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
