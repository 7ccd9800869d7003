import { sql } from 'kysely'
import { countRows } from '../../db/count-rows.ts'
import { type Database, type Trx, write } from '../../db/database.ts'
import { isAfter, type PagePosition } from '../../db/paging.ts'
import type { RunError, ScheduleTable } from '../tables.ts'
import type { Schedule } from './schedule.ts'

export async function insertSchedule(trx: Trx, schedule: Schedule): Promise<void> {
  await trx.insertInto('schedule').values(schedule).execute()
}

/** Finds a schedule; `accountId` is null for one of any account. */
export async function findSchedule(
  db: Database['reader'],
  { id, accountId }: { readonly id: string; readonly accountId: string | null },
): Promise<Schedule | null> {
  const query = db.selectFrom('schedule').selectAll().where('id', '=', id)
  const owned = accountId === null ? query : query.where('account_id', '=', accountId)
  return (await owned.executeTakeFirst()) ?? null
}

type ListOptions = {
  readonly accountId: string
  readonly sandbox: boolean
  /** The last schedule of the previous page; null for the first page. */
  readonly after: PagePosition | null
  readonly max: number
  /** Only schedules of this list, or of which it is the latest run. */
  readonly jobId?: string | undefined
}

/** Lists the schedules of an account, the newest first. */
export function listSchedules({ reader }: Database, o: ListOptions): Promise<Schedule[]> {
  const { jobId } = o
  let query = reader
    .selectFrom('schedule')
    .selectAll()
    .where('account_id', '=', o.accountId)
    .where('sandbox', '=', o.sandbox ? 1 : 0)
  if (jobId !== undefined) {
    query = query.where(({ eb, or }) =>
      or([eb('job_id', '=', jobId), eb('latest_job_id', '=', jobId)]),
    )
  }
  if (o.after !== null) query = query.where(isAfter(o.after))
  return query.orderBy('created_at', 'desc').orderBy('id', 'desc').limit(o.max).execute()
}

/** Lists the schedules of all accounts, the newest first. */
export function allSchedules({ reader }: Database): Promise<Schedule[]> {
  return reader
    .selectFrom('schedule')
    .selectAll()
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .execute()
}

export async function countSchedules(trx: Trx, accountId: string): Promise<number> {
  return countRows(trx.selectFrom('schedule').where('account_id', '=', accountId))
}

/** Changes a schedule. A run that is being prepared loses its claim. */
export function changeSchedule(
  trx: Trx,
  id: string,
  changes: Partial<ScheduleTable>,
): Promise<Schedule> {
  return trx
    .updateTable('schedule')
    .set({ ...changes, claimed_until: null })
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow()
}

/** Deletes a schedule. Returns false if there is none. */
export async function removeSchedule(trx: Trx, id: string): Promise<boolean> {
  const { numDeletedRows } = await trx
    .deleteFrom('schedule')
    .where('id', '=', id)
    .executeTakeFirstOrThrow()
  return numDeletedRows === 1n
}

/** Lists the schedules that are due by a steady time and not claimed, the earliest first. */
export function dueSchedules({ reader }: Database, now: number, max: number): Promise<Schedule[]> {
  return (
    reader
      .selectFrom('schedule')
      .selectAll()
      // Written literally, so that the partial index is used.
      .where(sql<boolean>`next_run_at is not null`)
      .where('next_run_at', '<=', now)
      .where(({ eb, or }) => or([eb('claimed_until', 'is', null), eb('claimed_until', '<=', now)]))
      .orderBy('next_run_at')
      .limit(max)
      .execute()
  )
}

/**
 * Claims a due schedule, so that one of several processes prepares its run; after a crash, another
 * one does so when the claim has expired. Returns false if another process has claimed it.
 */
export async function claimSchedule(
  database: Database,
  { id, next_run_at, claimed_until }: Schedule,
  until: number,
): Promise<boolean> {
  const { numUpdatedRows } = await write(database, trx =>
    trx
      .updateTable('schedule')
      .set({ claimed_until: until })
      .where('id', '=', id)
      .where('next_run_at', '=', next_run_at)
      .where(sql<boolean>`claimed_until is not distinct from cast(${claimed_until} as bigint)`)
      .executeTakeFirstOrThrow(),
  )
  return numUpdatedRows === 1n
}

/** Gives up a claim, so that the run is prepared again. */
export async function releaseClaim(database: Database, claim: Claim): Promise<void> {
  await write(database, trx => updateClaimed(trx, claim, { claimed_until: null }))
}

export type Claim = { readonly id: string; readonly claimedUntil: number }

type Run = {
  readonly at: number
  readonly nextRunAt: number | null
  /** The created job; null if there is none. */
  readonly jobId: string | null
  readonly error: RunError | null
}

/** Records a run under its claim. Returns false, and changes nothing, if the claim was lost. */
export function recordRun(trx: Trx, claim: Claim, run: Run): Promise<boolean> {
  return updateClaimed(trx, claim, {
    claimed_until: null,
    last_run_at: run.at,
    last_error: run.error,
    next_run_at: run.nextRunAt,
    ...(run.jobId === null ? {} : { latest_job_id: run.jobId }),
  })
}

async function updateClaimed(
  trx: Trx,
  { id, claimedUntil }: Claim,
  fields: Partial<ScheduleTable>,
): Promise<boolean> {
  const { numUpdatedRows } = await trx
    .updateTable('schedule')
    .set(fields)
    .where('id', '=', id)
    .where('claimed_until', '=', claimedUntil)
    .executeTakeFirstOrThrow()
  return numUpdatedRows === 1n
}

/** Pauses the schedules that would verify a job again, which is being deleted. */
export async function pauseSchedulesOf(trx: Trx, jobId: string): Promise<void> {
  await trx
    .updateTable('schedule')
    .set({ next_run_at: null, claimed_until: null, last_error: 'results_deleted' })
    .where('latest_job_id', '=', jobId)
    .execute()
}
