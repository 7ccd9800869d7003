import type { Transaction } from 'kysely'
import type { Schema } from '../db/schema.ts'

/** Ends sessions that were opened with a replaced text of a key no later than that text, epoch ms. */
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

/** Signs everybody out who came with a key, but for one session; gives how many it were. */
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
