import { type Kysely, sql } from 'kysely'
import { inChunk, nextChunk } from '../db/chunked-scan.ts'
import type { Database, Trx } from '../db/database.ts'
import type { Schema } from '../db/schema.ts'
import { beginsWithNul } from '../db/sql-dialect.ts'
import type { Job } from './job-store.ts'
import type { ItemState } from './tables.ts'

/** Rows that are looked through in one go: some 3 ms. */
const CHUNK = 2_500

/**
 * How many addresses of a job that ended early have no result: what it would cost to go on with it, at most. Its rows
 * stand still, so nobody need wait while they are counted.
 */
export async function countUnasked(
  database: Database,
  { id, total }: Pick<Job, 'id' | 'total'>,
): Promise<number> {
  let count = 0
  const size = nextChunk(database, CHUNK)
  for (let after = 0; after < total; after += size) {
    const chunk = { jobId: id, after, to: after + size }
    count += await inChunk(database, () => unaskedIn(database.reader, chunk))
  }
  return count
}

/** Keys of what is no address begin with a NUL. Erased rows have no text. */
async function unaskedIn(
  db: Kysely<Schema>,
  { jobId, after, to }: { jobId: string; after: number; to: number },
): Promise<number> {
  const { count } = await db
    .selectFrom('item')
    .select(eb => eb.fn.countAll<number>().as('count'))
    .where('job_id', '=', jobId)
    .where('position', '>', after)
    .where('position', '<=', to)
    .where('state', 'in', ['queued', 'routed', 'probing'])
    .where('text', '<>', '')
    .where(sql<boolean>`not ${beginsWithNul(db, sql`dedupe_key`)}`)
    .executeTakeFirstOrThrow()
  return Number(count)
}

/**
 * Opens a job that was cancelled or failed: what has no result is asked as in any job that goes on after a stop. The
 * time that it stood still is none that it worked, or its end could not be foretold.
 */
export async function reopenJob(
  trx: Trx,
  { id, started_at, finished_at }: Job,
  o: { readonly now: number; readonly hold: { amount: number; period: number } | null },
): Promise<Job> {
  await queueErased(trx, id)
  const stoodMs = Math.max(0, o.now - (finished_at ?? o.now))
  return trx
    .updateTable('job')
    .set({
      ...{ state: started_at === null ? 'queued' : 'processing', error: null, finished_at: null },
      started_at: started_at === null ? null : started_at + stoodMs,
      ...{ held: o.hold?.amount ?? 0, credit_period: o.hold?.period ?? null },
    })
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow()
}

/** Rows whose address was erased (`ev purge`) are filed under nobody any more, so nobody would come to them. */
async function queueErased(trx: Trx, jobId: string): Promise<void> {
  for (const state of ['routed', 'probing'] as const) {
    await trx
      .updateTable('item')
      .set({ state: 'queued' })
      .where('job_id', '=', jobId)
      .where('state', '=', sql.lit<ItemState>(state))
      .where('operator', 'is', null)
      .execute()
  }
}
