import type { Transaction } from 'kysely'
import type { Database } from '../db/database.ts'
import type { Schema } from '../db/schema.ts'
import { type CachedAnswer, ttlFor } from '../engine/result-cache.ts'

/** SQLite takes 32,766 parameters; a chunk of a list is far smaller. */
const KEYS_PER_STATEMENT = 500

/** Answers that are still kept, by address. */
export async function getCachedAnswers(
  { reader, clock }: Database,
  keys: readonly string[],
): Promise<Map<string, CachedAnswer>> {
  const found = new Map<string, CachedAnswer>()
  for (let from = 0; from < keys.length; from += KEYS_PER_STATEMENT) {
    const rows = await reader
      .selectFrom('answer')
      .select(['address_key', 'remembered'])
      .where('address_key', 'in', keys.slice(from, from + KEYS_PER_STATEMENT))
      .where('keep_until', '>', clock.now())
      .execute()
    for (const row of rows) found.set(row.address_key, JSON.parse(row.remembered) as CachedAnswer)
  }
  return found
}

/** Keeps definite answers, each for its time. */
export async function putCachedAnswers(
  trx: Transaction<Schema>,
  entries: ReadonlyMap<string, CachedAnswer>,
): Promise<void> {
  // All who keep answers lock rows in this order, so that no two wait for each other.
  const inOrder = [...entries].sort(([a], [b]) => (a < b ? -1 : 1))
  const rows = inOrder.flatMap(([address_key, cached]) => {
    const keep = ttlFor(cached.probed)
    if (keep === null) return []
    const keep_until = cached.at + keep.keepMs
    return [{ address_key, remembered: JSON.stringify(cached), keep_until }]
  })
  for (let from = 0; from < rows.length; from += KEYS_PER_STATEMENT) {
    await trx
      .insertInto('answer')
      .values(rows.slice(from, from + KEYS_PER_STATEMENT))
      .onConflict(conflict =>
        conflict.column('address_key').doUpdateSet(eb => ({
          remembered: eb.ref('excluded.remembered'),
          keep_until: eb.ref('excluded.keep_until'),
        })),
      )
      .execute()
  }
}

/** Forgets what is no longer kept. */
export async function deleteCachedAnswers(trx: Transaction<Schema>, now: number): Promise<void> {
  await trx.deleteFrom('answer').where('keep_until', '<=', now).execute()
}
