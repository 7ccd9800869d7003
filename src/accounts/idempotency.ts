import type { Database, Trx } from '../db/database.ts'
import { DAY } from '../platform/clock.ts'
import type { ReplayTable } from './tables.ts'

/** How long an answer can be had again. */
export const REPLAY_MS = DAY

export type StoredResponse = ReplayTable

/** What a request with this key was answered with, since a time. */
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

/** Keeps an answer, in the transaction of what it tells of; one from before `since` makes room. False: there is one already. */
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
