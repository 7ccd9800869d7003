import { sql } from 'kysely'
import { type Database, writeConcurrent } from '../../src/db/database.ts'
import { claimRoutedItems } from '../../src/jobs/item-claims.ts'

type Claim = { readonly jobId: string; readonly holder: string; readonly max: number }

/** Claims routed items as a member of a cluster does. Returns their positions, in list order. */
export async function claimItems(database: Database, claim: Claim): Promise<number[]> {
  const items =
    database.dialect === 'postgres'
      ? await claimRoutedItems(database, claim)
      : await claimOnSqlite(database, claim)
  return items.map(({ position }) => position).sort((a, b) => a - b)
}

/** A process on SQLite claims nothing, but releases what is claimed. */
async function claimOnSqlite(database: Database, { jobId, holder, max }: Claim) {
  const { rows } = await writeConcurrent(database, trx =>
    sql<{ position: number }>`
      update item set state = 'probing', holder = ${holder}
      where job_id = ${jobId} and position in (
        select position from item where job_id = ${jobId} and state = 'routed'
          and exists (select 1 from member where member.id = ${holder})
        order by position limit ${max})
      returning position`.execute(trx),
  )
  return rows
}
