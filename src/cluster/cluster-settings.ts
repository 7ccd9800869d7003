import { type Database, type Trx, writeConcurrent } from '../db/database.ts'

/**
 * Settings shared by all processes on a database: the base URL as configured by an admin, else as
 * set by the service that started last; the fingerprint of the shared secret, and when it was first
 * used, epoch ms.
 */
type SettingName = 'base-url' | 'base-url-by-itself' | 'secret-mark' | 'secret-begun-at'

/** Returns a setting; null if it is not set. */
export async function getSetting({ db }: Database, name: SettingName): Promise<string | null> {
  const row = await db
    .selectFrom('setting')
    .select('value')
    .where('name', '=', name)
    .executeTakeFirst()
  return row?.value ?? null
}

/**
 * Sets a value unless there is one, and returns the one in effect: with concurrent calls, that of
 * the first.
 */
export function setIfAbsent(database: Database, name: SettingName, value: string): Promise<string> {
  return writeConcurrent(database, async trx => {
    await trx
      .insertInto('setting')
      .values({ name, value })
      .onConflict(conflict => conflict.column('name').doNothing())
      .execute()
    const row = await trx
      .selectFrom('setting')
      .select('value')
      .where('name', '=', name)
      .executeTakeFirstOrThrow()
    return row.value
  })
}

/** Sets a value, replacing any other. */
export async function ensureSetting(
  database: Database,
  name: SettingName,
  value: string,
): Promise<void> {
  await writeConcurrent(database, trx => upsert(trx, name, value))
}

/**
 * Replaces the fingerprint `from` of the shared secret, and when the secret was first used, in one
 * transaction: a process that reads the new fingerprint must not take it for unused. Returns false
 * if the fingerprint has changed since.
 */
export function replaceSecretMark(
  database: Database,
  o: { readonly from: string; readonly to: string; readonly begunAt: number },
): Promise<boolean> {
  return writeConcurrent(database, async trx => {
    const { numUpdatedRows } = await trx
      .updateTable('setting')
      .set({ value: o.to })
      .where('name', '=', 'secret-mark')
      .where('value', '=', o.from)
      .executeTakeFirstOrThrow()
    if (numUpdatedRows !== 1n) return false
    await upsert(trx, 'secret-begun-at', `${o.begunAt}`)
    return true
  })
}

async function upsert(trx: Trx, name: SettingName, value: string): Promise<void> {
  await trx
    .insertInto('setting')
    .values({ name, value })
    .onConflict(conflict => conflict.column('name').doUpdateSet({ value }))
    .execute()
}
