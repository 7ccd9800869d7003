import { sql } from 'kysely'
import { type Database, writeConcurrent } from '../db/database.ts'
import { jsonRows } from '../db/sql-dialect.ts'

export type HeldItem = { readonly jobId: string; readonly position: number }

/** Items that a member claimed and that have neither a result nor another time yet. */
export async function itemsOf({ reader }: Database, holder: string): Promise<HeldItem[]> {
  return reader
    .selectFrom('item')
    .select(['job_id as jobId', 'position'])
    .where('holder', '=', holder)
    .where('state', '=', sql.lit('probing'))
    .execute()
}

/** Gives those of these items back that the member holds still: anybody may ask about them, as if it never had. */
export async function releaseItems(
  database: Database,
  holder: string,
  items: readonly HeldItem[],
): Promise<void> {
  await writeConcurrent(database, trx =>
    sql`
      update item set state = 'routed', holder = null
      from (select value ->> 'jobId' as job_id, cast(value ->> 'position' as bigint) as position
            from ${jsonRows(trx, items)}) as given
      where item.job_id = given.job_id and item.position = given.position
        and item.holder = ${holder} and item.state = 'probing'`.execute(trx),
  )
}
