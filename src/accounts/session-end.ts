import type { Transaction } from 'kysely'
import type { Schema } from '../db/schema.ts'

/**
 * Limits the sessions that were opened with a rotated secret of a key to the end of its grace
 * period, epoch ms.
 */
export async function endSessionsWithGrace(
  trx: Transaction<Schema>,
  keyId: string,
  end: number,
): Promise<void> {
  await trx
    .updateTable('session')
    .set({ expires_at: end, secret_expires_at: end })
    .where('key_id', '=', keyId)
    .where('secret_expires_at', '>', end)
    .execute()
}

/** Ends all sessions of a key except one. Returns how many ended. */
export async function endSessionsOfKey(
  trx: Transaction<Schema>,
  keyId: string,
  except: string | null,
): Promise<number> {
  const { numDeletedRows } = await trx
    .deleteFrom('session')
    .where('key_id', '=', keyId)
    .where('id', '!=', except ?? '')
    .executeTakeFirstOrThrow()
  return Number(numDeletedRows)
}
