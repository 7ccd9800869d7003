import { sql } from 'kysely'
import { type Database, writeAsyncCommit } from '../db/database.ts'
import { serverTime } from '../db/server-time.ts'
import { type WaitingPair, type WaitingPairRange, waitingPairs } from './item-claims.ts'

// Finds work in the store for which the queue must have a task. States in conditions are literals,
// so that the partial indexes are used.

const isOpen = sql`job.finished_at is null and job.account_id is not null and job.state in ('queued', 'processing')`

/** Lists jobs of accounts that were not started or have items that are not routed yet. */
export async function jobsWithoutTask({ reader }: Database): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    select id from job where ${isOpen} and (state = 'queued' or exists (
      select 1 from item where item.job_id = job.id and item.state = 'queued'))
    order by created_at, id`.execute(reader)
  return rows.map(({ id }) => id)
}

type WaitingPage = {
  /** Operators that have unpinned items due by `dueBefore`. */
  readonly operators: readonly string[]
  /** Where the next page starts; null if this is the last one. */
  readonly next: WaitingPair | null
}

/**
 * Examines `max` pairs of an operator and a job with items waiting for it, after the given pair.
 */
export async function operatorsWithoutTask(
  { reader }: Database,
  o: WaitingPairRange & { dueBefore: number },
): Promise<WaitingPage> {
  const { rows } = await sql<WaitingPair & { isOverdue: number }>`
    with recursive pair(operator, job_id, number) as (${waitingPairs(reader, o)})
    select operator, job_id as "jobId", case when exists (
        select 1 from job where job.id = pair.job_id and ${isOpen}) and exists (
        select 1 from item where item.operator = pair.operator and item.job_id = pair.job_id
          and item.state = 'routed' and item.due_at <= ${o.dueBefore} and item.egress is null)
      then 1 else 0 end as "isOverdue"
    from pair order by operator, job_id`.execute(reader)
  const last = rows.length === o.max ? rows.at(-1) : undefined
  return {
    operators: [...new Set(rows.filter(row => row.isOverdue === 1).map(row => row.operator))],
    next: last === undefined ? null : { operator: last.operator, jobId: last.jobId },
  }
}

export type PinnedItems = {
  readonly jobId: string
  readonly operator: string
  readonly egress: string
}

/** Lists the egresses that have pinned items due by `dueBefore`, in jobs of accounts. */
export async function overduePinnedItems(
  { reader }: Database,
  dueBefore: number,
): Promise<PinnedItems[]> {
  const { rows } = await sql<PinnedItems>`
    select distinct item.job_id as "jobId", item.operator, item.egress
    from item join job on job.id = item.job_id
    where item.state = 'routed' and item.egress is not null and item.due_at <= ${dueBefore}
      and ${isOpen}`.execute(reader)
  return rows
}

/**
 * Returns true if this process is to reconcile now: of all that share the database, one process
 * does so per `everyMs`.
 */
export async function claimReconciliation(database: Database, everyMs: number): Promise<boolean> {
  const now = serverTime(database)
  const { rows } = await writeAsyncCommit(database, db =>
    sql`
      insert into setting (name, value) values ('reconciled-at', cast(${now} as text))
      on conflict (name) do update set value = excluded.value
      where abs(cast(excluded.value as bigint) - cast(setting.value as bigint)) >= ${everyMs}
      returning name`.execute(db),
  )
  return rows.length === 1
}
