import type { Database, Trx } from '../db/database.ts'
import { DAY } from '../platform/clock.ts'
import type { ReplayTable } from './tables.ts'

/** How long a response is replayed for a request with the same idempotency key. */
export const REPLAY_MS = DAY

export type StoredResponse = ReplayTable

/**
 * Returns the stored response to a request with this idempotency key, if it was stored after
 * `since`.
 */
export async function findResponse(
  { reader }: Database,
  { keyId, key, since }: { keyId: string; key: string; since: number },
): Promise<StoredResponse | null> {
  const row = await reader
    .selectFrom('replay')
    .selectAll()
    .where('key_id', '=', keyId)
    .where('idempotency_key', '=', key)
    .where('created_at', '>', since)
    .executeTakeFirst()
  return row ?? null
}

/**
 * Stores a response in the transaction of the request it answers. A response from before `since` is
 * replaced. Returns false if there is a later one already.
 */
export async function saveResponse(trx: Trx, row: ReplayTable, since: number): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await trx
    .insertInto('replay')
    .values(row)
    .onConflict(conflict =>
      conflict
        .columns(['key_id', 'idempotency_key'])
        .doUpdateSet({
          fingerprint: row.fingerprint,
          status: row.status,
          answer: row.answer,
          created_at: row.created_at,
        })
        .where('replay.created_at', '<=', since),
    )
    .executeTakeFirstOrThrow()
  return numInsertedOrUpdatedRows === 1n
}
