import { sql, type Transaction } from 'kysely'
import type { Database } from '../db/database.ts'
import { createExpiry } from '../db/paging.ts'
import type { Schema } from '../db/schema.ts'
import { isPostgres, typedRows } from '../db/sql-dialect.ts'
import { runEach } from '../db/sqlite.ts'
import { type CachedAnswer, ttlFor } from '../engine/result-cache.ts'

/** Deletes cached answers that expire by a time, epoch ms. */
export const deleteAnswersBefore = createExpiry(
  'answer',
  ['address_key'],
  before => sql`keep_until <= ${before}`,
)

/** SQLite allows 32,766 parameters; a chunk of a list is far smaller. */
const KEYS_PER_STATEMENT = 500

/** Returns the cached answers that have not expired, by cache key. */
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

const PUT_ANSWER = `insert into answer (address_key, remembered, keep_until) values (?, ?, ?)
  on conflict (address_key) do update
    set remembered = excluded.remembered, keep_until = excluded.keep_until`

/** Caches definite answers, each with its own expiry. */
export async function putCachedAnswers(
  trx: Transaction<Schema>,
  entries: ReadonlyMap<string, CachedAnswer>,
): Promise<void> {
  // All writers lock rows in this order, which prevents deadlocks.
  const sorted = [...entries].sort(([a], [b]) => (a < b ? -1 : 1))
  const rows = sorted.flatMap(([address_key, cached]) => {
    const ttl = ttlFor(cached.probed)
    if (ttl === null) return []
    const keep_until = cached.at + ttl.keepMs
    return [{ address_key, remembered: JSON.stringify(cached), keep_until }]
  })
  if (!isPostgres(trx)) {
    const parameters = rows.map(row => [row.address_key, row.remembered, row.keep_until])
    await runEach(trx, PUT_ANSWER, parameters)
    return
  }
  if (rows.length === 0) return
  await sql`
    insert into answer (address_key, remembered, keep_until)
    select * from ${typedRows(rows, 'address_key text, remembered text, keep_until bigint')}
    on conflict (address_key) do update
      set remembered = excluded.remembered, keep_until = excluded.keep_until`.execute(trx)
}

/** Deletes expired answers from the cache. */
export async function deleteCachedAnswers(trx: Transaction<Schema>, now: number): Promise<void> {
  await trx.deleteFrom('answer').where('keep_until', '<=', now).execute()
}
