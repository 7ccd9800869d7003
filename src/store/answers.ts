import type { Transaction } from 'kysely'
import { keepFor, type Remembered } from '../engine/memory.ts'
import type { Database } from './database.ts'
import type { Schema } from './schema.ts'

/** SQLite takes 32,766 parameters; a chunk of a list is far smaller. */
const KEYS_PER_STATEMENT = 500

/** Answers that are still kept, by address. */
export async function recallAnswers(
  { reader, clock }: Database,
  keys: readonly string[],
): Promise<Map<string, Remembered>> {
  const found = new Map<string, Remembered>()
  for (let from = 0; from < keys.length; from += KEYS_PER_STATEMENT) {
    const rows = await reader
      .selectFrom('answer')
      .select(['address_key', 'remembered'])
      .where('address_key', 'in', keys.slice(from, from + KEYS_PER_STATEMENT))
      .where('keep_until', '>', clock.now())
      .execute()
    for (const row of rows) found.set(row.address_key, JSON.parse(row.remembered) as Remembered)
  }
  return found
}

/** Keeps definite answers, each for its time. */
export async function keepAnswers(
  trx: Transaction<Schema>,
  entries: ReadonlyMap<string, Remembered>,
): Promise<void> {
  // All who keep answers lock rows in this order, so that no two wait for each other.
  const inOrder = [...entries].sort(([a], [b]) => (a < b ? -1 : 1))
  const rows = inOrder.flatMap(([address_key, remembered]) => {
    const keep = keepFor(remembered.probed)
    if (keep === null) return []
    const keep_until = remembered.at + keep.keepMs
    return [{ address_key, remembered: JSON.stringify(remembered), keep_until }]
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
export async function forgetAnswers(trx: Transaction<Schema>, now: number): Promise<void> {
  await trx.deleteFrom('answer').where('keep_until', '<=', now).execute()
}
