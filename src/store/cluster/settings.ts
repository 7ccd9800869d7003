import { type Database, writeBeside } from '../database.ts'

/** What all that share a database go by: `base-url` as an operator gave it, else as the service that began last has it. */
export type SettingName = 'base-url' | 'base-url-by-itself' | 'secret-mark'

/** What is agreed upon; null: nothing yet. */
export async function agreedOn({ db }: Database, name: SettingName): Promise<string | null> {
  const row = await db
    .selectFrom('setting')
    .select('value')
    .where('name', '=', name)
    .executeTakeFirst()
  return row?.value ?? null
}

/** Enters a value where there is none yet, and gives the one that holds: of several that do so at once the first one’s. */
export function agreeOn(database: Database, name: SettingName, value: string): Promise<string> {
  return writeBeside(database, async trx => {
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
export async function settleOn(
  database: Database,
  name: SettingName,
  value: string,
): Promise<void> {
  await writeBeside(database, trx =>
    trx
      .insertInto('setting')
      .values({ name, value })
      .onConflict(conflict => conflict.column('name').doUpdateSet({ value }))
      .execute(),
  )
}
