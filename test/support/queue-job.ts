import { sql } from 'kysely'
import { type Database, type Trx, write } from '../../src/db/database.ts'
import * as itemImport from '../../src/jobs/import/item-import.ts'
import type { Job } from '../../src/jobs/job-store.ts'

const KEY = sql`case item.dedupe_key when '' then item.text else item.dedupe_key end`

type Options = Omit<Parameters<typeof itemImport.queueJobIn>[2], 'counted'>

/** Queues a job whose rows were added without an import, which counts and marks duplicates. */
export const queueJob = (database: Database, jobId: string): Promise<Job> =>
  write(database, trx => queueJobIn(trx, jobId, { now: database.clock.now() }))

/** Like `queueJob`, in a transaction of the caller. */
export async function queueJobIn(trx: Trx, jobId: string, options: Options): Promise<Job> {
  await sql`
    update item set
      state = case when item.position = first.position then 'queued' else 'same' end,
      same_as = case when item.position = first.position then null else first.position end,
      copies = case when item.position = first.position then first.copies else 0 end
    from (select ${KEY} as key, min(position) as position, count(*) as copies from item
          where job_id = ${jobId} group by ${KEY} having count(*) > 1) as first
    where item.job_id = ${jobId} and ${KEY} = first.key`.execute(trx)
  const rows = await trx.selectFrom('item').select('state').where('job_id', '=', jobId).execute()
  const duplicates = rows.filter(({ state }) => state === 'same').length
  return itemImport.queueJobIn(trx, jobId, {
    ...options,
    counted: { total: rows.length, duplicates },
  })
}
