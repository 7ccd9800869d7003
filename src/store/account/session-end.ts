import type { Transaction } from 'kysely'
import type { Schema } from '../schema.ts'

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
