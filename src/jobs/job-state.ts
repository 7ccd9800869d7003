import { sql, type Transaction } from 'kysely'
import { type Database, writeConcurrent } from '../db/database.ts'
import type { Schema } from '../db/schema.ts'
import { isPostgres } from '../db/sql-dialect.ts'
import type { Class } from '../engine/verdict/verdict.ts'
import { EvError } from '../platform/error.ts'
import { releaseReservation } from './job-credits.ts'
import { type Job, jobIn } from './job-store.ts'

/**
 * Takes a job up, for the first time or after a stop: what was under way then is asked again, but for what a member of
 * the cluster is asking.
 */
export async function startJob(database: Database, jobId: string): Promise<Job> {
  return writeConcurrent(database, async trx => {
    refuseCancelled(await jobIn(trx, jobId))
    await requeue(trx, jobId)
    await trx
      .updateTable('job')
      .set({ state: 'processing', started_at: database.clock.now() })
      .where('id', '=', jobId)
      .where('state', '=', 'queued')
      .execute()
    return jobIn(trx, jobId)
  })
}

async function requeue(trx: Transaction<Schema>, jobId: string): Promise<void> {
  const underWay = trx
    .updateTable('item')
    .set({ state: 'routed' })
    .where('job_id', '=', jobId)
    .where('state', '=', sql.lit('probing'))
  // On SQLite there are no members, and each column that is named costs a look at its indexes.
  const left = isPostgres(trx)
    ? underWay
        .set({ holder: null })
        .where(({ not, exists, selectFrom }) =>
          not(exists(selectFrom('member').select('id').whereRef('member.id', '=', 'item.holder'))),
        )
    : underWay
  await left.execute()
}

export type Counts = Readonly<Record<Class, number>> & {
  /** Those that something inside ev ended, among the unknown ones. */
  readonly failed?: number
  /** Credits that are no longer set aside for it. */
  readonly released?: number
}

/**
 * Counts results into their job and finishes it with the last one; call it in the transaction that writes
 * them. Throws when the job was cancelled meanwhile, so that nothing of them is written.
 */
export async function countResults(
  trx: Transaction<Schema>,
  jobId: string,
  counts: Counts,
  now: number,
): Promise<Job> {
  const { failed = 0, released = 0 } = counts
  const added = counts.deliverable + counts.risky + counts.undeliverable + counts.unknown
  const job = await trx
    .updateTable('job')
    .set(eb => ({
      done: eb('done', '+', added),
      deliverable: eb('deliverable', '+', counts.deliverable),
      risky: eb('risky', '+', counts.risky),
      undeliverable: eb('undeliverable', '+', counts.undeliverable),
      unknown: eb('unknown', '+', counts.unknown),
      failed: eb('failed', '+', failed),
      held: eb('held', '-', released),
    }))
    .where('id', '=', jobId)
    .where('state', '<>', 'cancelled')
    .returningAll()
    .executeTakeFirst()
  if (job === undefined) return refused(trx, jobId)
  return job.done === job.total ? finishJob(trx, jobId, now) : job
}

/** Says why nothing was counted: the job was cancelled, or is not there. */
async function refused(trx: Transaction<Schema>, jobId: string): Promise<never> {
  refuseCancelled(await jobIn(trx, jobId))
  throw new Error(`the job ${jobId} takes no results`)
}

/** All of it is done. */
export function finishJob(trx: Transaction<Schema>, jobId: string, now: number): Promise<Job> {
  return trx
    .updateTable('job')
    .set({ state: 'completed', finished_at: now })
    .where('id', '=', jobId)
    .returningAll()
    .executeTakeFirstOrThrow()
}

/** Ends a job that cannot be finished; `code` is what whoever submitted it is told. */
export async function failJob(
  trx: Transaction<Schema>,
  jobId: string,
  code: string,
  now: number,
): Promise<Job> {
  await jobIn(trx, jobId)
  await releaseReservation(trx, { id: jobId })
  return trx
    .updateTable('job')
    .set({ state: 'failed', error: code, finished_at: now })
    .where('id', '=', jobId)
    .returningAll()
    .executeTakeFirstOrThrow()
}

/**
 * Cancels a job that is not finished, for good: it takes no more results, and the same list is a new job. A
 * process that works on it hears of it with its next commit, as an error. False when it was finished already.
 */
export async function cancelJob(database: Database, jobId: string): Promise<boolean> {
  const cancelled = { state: 'cancelled', finished_at: database.clock.now() } as const
  return writeConcurrent(database, async trx => {
    const { numUpdatedRows } = await trx
      .updateTable('job')
      .set(cancelled)
      .where('id', '=', jobId)
      .where('finished_at', 'is', null)
      .executeTakeFirstOrThrow()
    if (numUpdatedRows === 0n) return false
    await releaseReservation(trx, { id: jobId })
    return true
  })
}

/** Throws when the job was cancelled: whoever works on it has to end. */
export function refuseCancelled({ id, state, done, total }: Job): void {
  if (state !== 'cancelled') return
  throw new EvError(
    'interrupted',
    `The list was cancelled by “ev jobs cancel ${id}” with ${done} of ${total} rows done. The same command starts it anew.`,
  )
}
