import { type Database, writeConcurrent } from '../db/database.ts'

/**
 * What all that share a database go by: `base-url` as an operator gave it, else as the service that began last has it; by
 * which mark its secret is known, and when somebody began with it, epoch ms.
 */
export type SettingName = 'base-url' | 'base-url-by-itself' | 'secret-mark' | 'secret-begun-at'

/** What is agreed upon; null: nothing yet. */
export async function getSetting({ db }: Database, name: SettingName): Promise<string | null> {
  const row = await db
    .selectFrom('setting')
    .select('value')
    .where('name', '=', name)
    .executeTakeFirst()
  return row?.value ?? null
}

/** Enters a value where there is none yet, and gives the one that holds: of several that do so at once the first one’s. */
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

/** Enters a value in place of the one that is there. */
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

/** Enters a value in place of that one; false where it is another by now. */
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
