import { type Database, writeConcurrent } from '../db/database.ts'

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
  await writeConcurrent(database, trx =>
    trx
      .insertInto('setting')
      .values({ name, value })
      .onConflict(conflict => conflict.column('name').doUpdateSet({ value }))
      .execute(),
  )
}

/** Replaces the value `from`. Returns false if it has changed since. */
export async function replaceSetting(
  database: Database,
  name: SettingName,
  o: { readonly from: string; readonly to: string },
): Promise<boolean> {
  const { numUpdatedRows } = await writeConcurrent(database, trx =>
    trx
      .updateTable('setting')
      .set({ value: o.to })
      .where('name', '=', name)
      .where('value', '=', o.from)
      .executeTakeFirstOrThrow(),
  )
  return numUpdatedRows === 1n
}
